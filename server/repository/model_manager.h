#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/options/options.h"
#include "repository/load_queue.h"
#include "repository/repository.h"
#include "repository/repository_scan.h"
#include "repository/version_policy.h"

namespace linserve {

struct ManagerOptions {
  RepositoryRoot root{};
  VersionPolicy versions{};
  std::chrono::nanoseconds poll{0};  // how often to look for changed files; 0: never
  int64_t max_model_bytes = 0;       // bound of all weights together, old and new; 0: no bound
  std::map<std::string, std::string> aliases{};  // further names of models
  // A load waits so long for memory that models on their way out still take.
  std::chrono::nanoseconds patience = std::chrono::seconds(5);

  void Bind(OptionTable& table);
};

// Keeps what is served in step with a directory of models: loads, replaces and withdraws versions,
// one after another on a thread of its own. A version whose files changed is served until the new
// one is loaded and warm, and goes on being served if that fails.
class ModelManager {
 public:
  // Says whether there is room for so many bytes of weights more; if not, why.
  using Room = std::function<absl::Status(int64_t bytes)>;
  // Loads one version and warms it up. It asks for room before it takes any.
  using Loader = std::function<absl::StatusOr<std::unique_ptr<ServedModel>>(const ModelDirectory&,
                                                                            const Room&)>;
  // Called after each change; it is told whether the model has a version that is ready.
  using Observer = std::function<void(const std::string& model, bool ready)>;
  using Done = LoadQueue::Done;

  // `repository` and `metrics` must outlive the manager.
  ModelManager(ManagerOptions options, ModelRepository& repository, Metrics& metrics, Loader loader,
               Observer observer);
  // Waits for the load under way. What was asked for after it ends with UNAVAILABLE.
  ~ModelManager() = default;
  ModelManager(const ModelManager&) = delete;
  ModelManager& operator=(const ModelManager&) = delete;

  // Brings what is served in step with the directory: new and changed versions are loaded, those
  // that are gone are withdrawn. `done`, called on the manager's thread, gets the first error. From
  // the first call on the directory is polled.
  void Refresh(Done done);

  // Loads the versions of one model, again if they are served. `done` gets NOT_FOUND if there is
  // none.
  void Load(const std::string& model, Done done);

  // Withdraws all versions of a model until it is loaded again or its files change. `done` gets
  // NOT_FOUND if there is none.
  void Unload(const std::string& model, Done done);

  // These end the manager's work as they end a LoadQueue's.
  void Close() { queue_.Close(); }
  bool Drain(TimePoint deadline) { return queue_.Drain(deadline); }

 private:
  using Key = std::pair<std::string, int64_t>;  // name and version

  // Holds a version as it was when it was last loaded, whether that went well or not.
  struct Known {
    std::string stamp;
    bool broken = false;
    bool try_again = false;  // it may fit into memory the next time
  };

  absl::Status RefreshAll();
  absl::Status FollowAll();
  absl::Status LoadAgain(const std::string& model);
  absl::Status UnloadAll(const std::string& model);
  std::vector<ModelDirectory> Wanted(const std::vector<ModelDirectory>& found);
  absl::Status Follow(const std::vector<ModelDirectory>& found);
  absl::Status CheckChoice(const std::vector<ModelDirectory>& found);
  absl::Status LoadChanged(const std::vector<ModelDirectory>& found, std::set<Key>& failures);
  absl::Status LoadOne(const ModelDirectory& directory);
  absl::StatusOr<std::unique_ptr<ServedModel>> TryLoad(const ModelDirectory& directory) const;
  absl::Status CheckRoom(int64_t added, const std::string& what) const;
  void Observe(const std::string& model);
  void WarnOf(const std::vector<PassedOver>& passed_over);
  bool ForgetWhatIsGone(const std::vector<ModelDirectory>& found);
  void Withdraw(const std::string& model, int64_t version);
  // Returns what is to be served of what was found. What is broken is passed over, and what is
  // among `failures`.
  std::vector<ModelDirectory> Choose(const std::vector<ModelDirectory>& found,
                                     const std::set<Key>& failures = {}) const;

  const ManagerOptions options_;
  ModelRepository& repository_;
  Metrics& metrics_;
  const Loader loader_;
  const Observer observer_;

  // Only the queue's thread touches these.
  std::map<Key, Known> known_;
  // Models that were, with the stamps that their files had; nullopt: those could not be read then.
  std::map<std::string, std::optional<std::string>> unloaded_;
  std::set<std::string> unchosen_;    // models that were reported as having no chosen version
  std::set<PassedOver> passed_over_;  // what the log has of the directories that are there

  LoadQueue queue_;  // ends first
};

}  // namespace linserve
