#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/mutex.h"
#include "engine/repository.h"
#include "engine/repository_scan.h"
#include "engine/version_policy.h"

namespace linserve {

struct ManagerOptions {
  std::string root;  // of the repository
  VersionPolicy versions{};
  std::chrono::nanoseconds poll{0};  // how often to look for changed files; 0: never
  int64_t max_model_bytes = 0;       // of all weights together, old and new; 0: no bound
  Links links = Links::kInside;
};

// Keeps what is served in step with a directory of models: loads, replaces and withdraws versions,
// one after another on a thread of its own. A version whose files changed is served until the new
// one is loaded and warm, and goes on being served if that fails.
class ModelManager {
 public:
  // Loads one version and warms it up.
  using Loader = std::function<absl::StatusOr<std::unique_ptr<ServedModel>>(const ModelDirectory&)>;
  // Told after each change whether a model has a version that is ready.
  using Observer = std::function<void(const std::string& model, bool ready)>;
  using Done = std::function<void(const absl::Status&)>;

  // `repository` and `metrics` must outlive the manager.
  ModelManager(ManagerOptions options, ModelRepository& repository, Metrics& metrics, Loader loader,
               Observer observer);
  // Waits for the load under way; what was asked for after it ends with CANCELLED.
  ~ModelManager();
  ModelManager(const ModelManager&) = delete;
  ModelManager& operator=(const ModelManager&) = delete;

  // Brings what is served in step with the directory: new and changed versions are loaded, those
  // that are gone are withdrawn. `done`, called on the manager's thread, gets the first error. From
  // the first call on the directory is polled.
  void Refresh(Done done);

  // Loads the versions of one model, again if they are served. NOT_FOUND if there is none.
  void Load(const std::string& model, Done done);

  // Withdraws all versions of a model until it is loaded again or its files change. NOT_FOUND if
  // there is none.
  void Unload(const std::string& model, Done done);

 private:
  using Key = std::pair<std::string, int64_t>;  // name and version

  // A version as it was when it was last loaded, whether that went well or not.
  struct Known {
    std::string fingerprint;
    bool broken = false;
    bool try_again = false;  // it may fit into memory the next time
  };

  struct Task {
    std::function<absl::Status()> run;
    Done done;
  };

  void Post(Task task);
  void Work();
  absl::Status RefreshAll();
  absl::Status LoadAgain(const std::string& model);
  absl::Status UnloadAll(const std::string& model);
  absl::Status Follow(const std::vector<ModelDirectory>& found);
  absl::Status CheckChoice(const std::vector<ModelDirectory>& found);
  absl::Status LoadChanged(const std::vector<ModelDirectory>& found);
  absl::Status LoadOne(const ModelDirectory& directory);
  absl::StatusOr<std::unique_ptr<ServedModel>> TryLoad(const ModelDirectory& directory) const;
  void Observe(const std::string& model);
  bool ForgetWhatIsGone(const std::vector<ModelDirectory>& found);
  void Withdraw(const std::string& model, int64_t version);
  std::vector<ModelDirectory> Choose(const std::vector<ModelDirectory>& found) const;
  absl::Status CheckMemory(int64_t added, const std::string& what) const;

  const ManagerOptions options_;
  ModelRepository& repository_;
  Metrics& metrics_;
  const Loader loader_;
  const Observer observer_;

  // Touched by the thread alone.
  std::map<Key, Known> known_;
  std::set<std::string> unchosen_;  // models that have been reported as such

  Mutex mutex_;
  CondVar changed_;
  std::deque<Task> tasks_ LINSERVE_GUARDED_BY(mutex_);
  bool ended_ LINSERVE_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace linserve
