#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "repository/model_manager.h"
#include "support/fakes/engine_fixture.h"

namespace linserve {

// Manages a repository of directories whose "weights" are words: "broken" cannot be loaded.
class ModelManagerTest : public EngineTest {
 protected:
  ModelManagerTest() { std::filesystem::create_directories(root()); }

  std::string root() const { return dir_.File("repository"); }

  // Makes or replaces a model, in one step as far as its weights go.
  void Write(const std::string& path, const std::string& weights) {
    const std::string directory = root() + "/" + path;
    std::filesystem::create_directories(directory);
    WriteAll(directory + "/weights.new", weights);
    std::filesystem::rename(directory + "/weights.new", directory + "/model.safetensors");
    if (!std::filesystem::exists(directory + "/config.json"))
      WriteAll(directory + "/config.json", "{}");
  }
  void Remove(const std::string& path) { std::filesystem::remove_all(root() + "/" + path); }

  void Manage(const std::string& policy = "all", std::chrono::nanoseconds poll = {},
              int64_t max_bytes = 0) {
    manager_ = std::make_unique<ModelManager>(
        ManagerOptions{.root = {root()},
                       .versions = *VersionPolicy::Parse(policy),
                       .poll = poll,
                       .max_model_bytes = max_bytes,
                       .patience = patience_},
        repository_, metrics_,
        [this](const ModelDirectory& directory, const ModelManager::Room& room) {
          return Load(directory, room);
        },
        [this](const std::string& model, bool ready) { ready_[model] = ready; });
  }

  absl::StatusOr<std::unique_ptr<ServedModel>> Load(const ModelDirectory& directory,
                                                    const ModelManager::Room& room) {
    if (absl::Status fits = room(kFakeModelBytes); !fits.ok()) return fits;
    ++loads_;
    on_load_();
    if (ReadAll(directory.path + "/model.safetensors") == "broken") {
      return absl::InvalidArgumentError("the weights are broken");
    }
    auto engine = Engine::Start(options_, FakeModelFactory(control_),
                                metrics_.ForModel(directory.name, directory.version));
    if (!engine.ok()) return engine.status();
    auto model = std::make_unique<ServedModel>();
    model->name = directory.name;
    model->version = directory.version;
    model->engine = *std::move(engine);
    return model;
  }

  // Calls `begin`, and waits for the end of what it begins.
  template <typename Begin>
  static absl::Status Await(const Begin& begin) {
    std::promise<absl::Status> done;
    begin([&](const absl::Status& status) { done.set_value(status); });
    return done.get_future().get();
  }
  absl::Status Refresh() {
    return Await([&](auto done) { manager_->Refresh(done); });
  }
  absl::Status LoadByName(const std::string& model) {
    return Await([&](auto done) { manager_->Load(model, done); });
  }
  absl::Status Unload(const std::string& model) {
    return Await([&](auto done) { manager_->Unload(model, done); });
  }

  // Returns "NAME VERSION STATE" of each version.
  std::vector<std::string> Index() const {
    std::vector<std::string> lines;
    for (const VersionStatus& version : repository_.Index()) {
      lines.push_back(version.name + " " + std::to_string(version.version) + " " +
                      std::string(Name(version.state)));
    }
    return lines;
  }

  TempDir dir_;
  ModelRepository repository_{metrics_};
  std::map<std::string, bool> ready_;
  std::atomic<int> loads_ = 0;
  std::function<void()> on_load_ = [] {};
  std::chrono::nanoseconds patience_ = std::chrono::minutes(1);
  std::unique_ptr<ModelManager> manager_;
};

}  // namespace linserve
