#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/sequence/item.h"
#include "core/sequence/truncation.h"
#include "core/threads/mutex.h"
#include "engine/engine.h"
#include "repository/retirement.h"
#include "repository/version_policy.h"
#include "telemetry/metrics.h"
#include "text/late_texts.h"
#include "text/pair_text.h"
#include "text/static_texts.h"

namespace linserve {

// Holds one version of a model that answers requests.
struct ServedModel {
  std::string name;
  int64_t version = 1;
  Pooling default_pooling = Pooling::kNone;
  bool default_normalize = false;  // of pooled vectors
  Truncation default_truncation = Truncation::kNone;
  int64_t most_text_tokens = 0;                       // of a text; 0: as many as the model takes
  std::string text_limit_origin = "max_text_tokens";  // what says so
  std::map<std::string, std::string> prompts{};       // by name, for requests that ask for one
  std::string default_prompt{};                       // the name of that of all others; "": none
  std::optional<LateTexts> late_texts{};  // how texts become rows; none: they become what others do
  std::optional<StaticTexts> static_texts{};  // what of texts becomes tokens; none: all of them
  std::vector<int64_t> dimensions{};  // to which its vectors may be cut, since it was trained so
  std::optional<PairText>
      pair_text{};  // in which pairs are written; none: the tokenizer joins them
  std::shared_ptr<const Tokenizer> tokenizer;  // for its input `x`; null: it takes no text
  int64_t threads = 0;                         // that each replica has at most
  std::string processor{};                     // what computes, as its maker calls it
  VersionChoice versions{};                    // which versions of this model are served
  std::unique_ptr<Engine> engine;
};

struct VersionStatus {
  std::string name;
  int64_t version = 1;
  ModelState state = ModelState::kLoading;
  std::string reason;  // why it is in its state, or why its files could not take the place of what
                       // is served
};

// Knows the models of a server by name and version, and how they stand. A version that is replaced
// or withdrawn answers all that was submitted to it. Thread-safe.
class ModelRepository {
 public:
  // `metrics`, which tells the states, must outlive the repository.
  // Models have further names by `aliases`.
  explicit ModelRepository(Metrics& metrics, std::map<std::string, std::string> aliases = {})
      : metrics_(metrics), aliases_(std::move(aliases)) {}
  ModelRepository(const ModelRepository&) = delete;
  ModelRepository& operator=(const ModelRepository&) = delete;

  // Says that a version is about to be loaded: it is UNAVAILABLE rather than unknown, unless one is
  // served already.
  void Announce(const std::string& name, int64_t version);

  // Serves the model from now on, in the place of what had its name and version.
  void Publish(std::unique_ptr<ServedModel> model);

  // Says that a version could not be loaded. If one is served already, it stays.
  void Failed(const std::string& name, int64_t version, const std::string& reason);

  // Withdraws a version, which is listed as unavailable for this reason.
  void Withdraw(const std::string& name, int64_t version, const std::string& reason);
  // Withdraws a version and forgets that there was one.
  void Forget(const std::string& name, int64_t version);

  // Returns the name of the model that a caller calls so: by an alias, or by the name that it has
  // on a hub, which ends with its own. A name that is no model's stays as it is.
  std::string NameOf(const std::string& given) const;

  // Finds a model. Version 0 is the latest that is ready; an empty name is the only model there is.
  // NOT_FOUND lists what there is; UNAVAILABLE means that the model is still loading, or was
  // unloaded, or could not be loaded. Hold the result no longer than it takes to submit a request.
  absl::StatusOr<std::shared_ptr<const ServedModel>> Find(const std::string& name,
                                                          int64_t version) const;

  // Returns what is served as this version, even while its device is lost; null if nothing is.
  std::shared_ptr<const ServedModel> Served(const std::string& name, int64_t version) const;

  // Lists all versions that are served, by name and version.
  std::vector<std::shared_ptr<const ServedModel>> List() const;

  // Returns the bytes of all weights in memory, those included of models that were replaced and
  // still answer.
  int64_t weight_bytes() const { return retirement_.weight_bytes(); }

  // Waits until models that were replaced or withdrawn have answered all, or until the deadline.
  void AwaitRetired(TimePoint deadline) { retirement_.AwaitEnd(deadline); }

  // Returns OK if every model that is served can answer; else why the first one of them cannot.
  absl::Status Ready() const;

  // Returns whether a model's devices are lost for good, so that this process should be replaced.
  bool stuck() const;

  // Lists all versions that are known, by name and version.
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
  using Models = std::map<std::string, Versions>;

  Models::const_iterator OnlyOne() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string Known() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Unserved(const std::string& name, int64_t version) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void SetState(const std::string& name, int64_t version, Entry& entry, ModelState state,
                const std::string& reason) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Metrics& metrics_;
  const std::map<std::string, std::string> aliases_;
  Retirement retirement_;  // outlives the models that it has shared
  mutable Mutex mutex_;
  Models models_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace linserve
