#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/item.h"
#include "core/mutex.h"
#include "engine/engine.h"
#include "engine/retirement.h"
#include "engine/version_policy.h"
#include "telemetry/metrics.h"

namespace linserve {

class Tokenizer;

// One version of a model that answers requests.
struct ServedModel {
  std::string name;
  int64_t version = 1;
  Pooling default_pooling = Pooling::kNone;
  std::shared_ptr<const Tokenizer> tokenizer;  // of its input `x`; null: it takes no text
  VersionChoice versions{};                    // of this model, which it is one of
  std::unique_ptr<Engine> engine;
};

struct VersionStatus {
  std::string name;
  int64_t version = 1;
  ModelState state = ModelState::kLoading;
  std::string reason;  // of its state, or why its files could not take the place of what is served
};

// The models of a server by name and version, and how they stand. A version that is replaced or
// withdrawn answers all that was submitted to it. Thread-safe.
class ModelRepository {
 public:
  // `metrics`, which tells the states, must outlive the repository.
  explicit ModelRepository(Metrics& metrics) : metrics_(metrics) {}
  ModelRepository(const ModelRepository&) = delete;
  ModelRepository& operator=(const ModelRepository&) = delete;

  // A version is about to be loaded: UNAVAILABLE rather than unknown, unless one is served already.
  void Announce(const std::string& name, int64_t version);

  // Serves the model from now on, in the place of what had its name and version.
  void Publish(std::unique_ptr<ServedModel> model);

  // A version could not be loaded. If one is served already, it stays.
  void Failed(const std::string& name, int64_t version, const std::string& reason);

  // Withdraws a version: it is listed as unavailable for this reason.
  void Withdraw(const std::string& name, int64_t version, const std::string& reason);
  // Withdraws it and forgets that there was one.
  void Forget(const std::string& name, int64_t version);

  // Version 0: the latest that is ready. Empty name: the only model there is. NOT_FOUND lists what
  // there is; UNAVAILABLE while the model is still loading, or was unloaded, or could not be
  // loaded. Hold the result no longer than it takes to submit a request.
  absl::StatusOr<std::shared_ptr<const ServedModel>> Find(const std::string& name,
                                                          int64_t version) const;

  // All that are served, by name and version.
  std::vector<std::shared_ptr<const ServedModel>> List() const;

  // Whether a model's devices are lost for good, so that this process should be replaced.
  bool stuck() const;

  // All that are known, likewise.
  std::vector<VersionStatus> Index() const;

  // Drains every model; returns how many sequences were given up at `deadline`.
  size_t Drain(TimePoint deadline);

 private:
  struct Entry {
    ModelState state = ModelState::kLoading;
    std::string reason;
    std::shared_ptr<const ServedModel> model;
  };
  using Versions = std::map<int64_t, Entry>;

  absl::Status Unserved(const std::string& name, int64_t version) const LINSERVE_REQUIRES(mutex_);

  void SetState(const std::string& name, int64_t version, Entry& entry, ModelState state,
                const std::string& reason) LINSERVE_REQUIRES(mutex_);

  Metrics& metrics_;
  Retirement retirement_;  // outlives what is handed out below
  mutable Mutex mutex_;
  std::map<std::string, Versions> models_ LINSERVE_GUARDED_BY(mutex_);
};

}  // namespace linserve
