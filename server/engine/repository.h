#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/item.h"
#include "core/mutex.h"
#include "engine/engine.h"

namespace linserve {

// Where one version of a model lies: REPOSITORY/NAME/VERSION, or REPOSITORY/NAME (version 1).
struct ModelDirectory {
  std::string name;
  int64_t version = 1;
  std::string path;
};

// The model directories below `root`, by name and version. NOT_FOUND says what was looked for if
// there is none.
absl::StatusOr<std::vector<ModelDirectory>> ScanRepository(const std::string& root);

// One version of a model that answers requests.
struct ServedModel {
  std::string name;
  int64_t version = 1;
  Pooling default_pooling = Pooling::kNone;
  std::unique_ptr<Engine> engine;
};

// The models of a server by name and version. Thread-safe.
class ModelRepository {
 public:
  // Announces what will be served, so that it is UNAVAILABLE rather than unknown until then.
  explicit ModelRepository(std::vector<ModelDirectory> announced);

  void Add(std::shared_ptr<const ServedModel> model);

  // Version 0: the latest. Empty name: the only model there is. NOT_FOUND lists what there is;
  // UNAVAILABLE while the model is still loading.
  absl::StatusOr<std::shared_ptr<const ServedModel>> Find(const std::string& name,
                                                          int64_t version) const;

  // All that are loaded, by name and version.
  std::vector<std::shared_ptr<const ServedModel>> List() const;

  // Drains every model; returns how many sequences were given up at `deadline`.
  size_t Drain(TimePoint deadline);

 private:
  absl::Status Unknown(const std::string& name, int64_t version) const LINSERVE_REQUIRES(mutex_);

  const std::vector<ModelDirectory> announced_;
  mutable Mutex mutex_;
  std::vector<std::shared_ptr<const ServedModel>> models_ LINSERVE_GUARDED_BY(mutex_);
};

}  // namespace linserve
