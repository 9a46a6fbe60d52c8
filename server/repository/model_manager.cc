#include "repository/model_manager.h"

#include <algorithm>
#include <set>

#include "core/strings/quote.h"
#include "core/system/memory.h"
#include "core/threads/guarded.h"
#include "telemetry/log.h"

namespace linserve {

void ManagerOptions::Bind(OptionTable& table) {
  table.Text("model_repository", root.path,
             "Directory of model directories, NAME/VERSION or NAME; or one of these itself");
  table.Text(
      "model_name", root.model_name,
      "Name of the model where model_repository is a model's own directory, whose name counts "
      "otherwise");
  table.Flag("follow_links", root.follow_links,
             "Serve models whose files lie elsewhere, too, where links in the repository lead to");
  table.Texts(
      "model_aliases", aliases,
      "Further names of models, as callers call them: {\"text-embedding-3-small\": \"NAME\"}; "
      "a name such as sentence-transformers/NAME is that of NAME without it");
  table.Parsed(
      "version_policy",
      [this](const std::string& text) -> absl::Status {
        auto parsed = VersionPolicy::Parse(text);
        if (!parsed.ok()) return parsed.status();
        versions = *std::move(parsed);
        return absl::OkStatus();
      },
      [this] { return versions.text(); },
      "Which versions are served: all, latest, latest(N) or 1,3; for single models with "
      "their names: \"latest; ranker=all; embed=1,3\"");
  table.Duration("repository_poll_seconds", poll, 0, 86400,
                 "How often to look for new, changed and removed models; 0: on SIGHUP only");
  table.Bytes(
      "max_model_bytes", max_model_bytes, 0, int64_t{1} << 50,
      "How many bytes the weights of all models may take together, on GPUs of all replicas, and "
      "while one is replaced also of its successor; 0: what the memory plan leaves; on GPUs, no "
      "bound");
}

ModelManager::ModelManager(ManagerOptions options, ModelRepository& repository, Metrics& metrics,
                           Loader loader, Observer observer)
    : options_(std::move(options)),
      repository_(repository),
      metrics_(metrics),
      loader_(std::move(loader)),
      observer_(std::move(observer)),
      queue_(options_.poll, [this] { return RefreshAll(); }) {}

void ModelManager::Refresh(Done done) {
  queue_.Add([this] { return RefreshAll(); }, std::move(done));
}

void ModelManager::Load(const std::string& model, Done done) {
  queue_.Add([this, model] { return LoadAgain(model); }, std::move(done));
}

void ModelManager::Unload(const std::string& model, Done done) {
  queue_.Add([this, model] { return UnloadAll(model); }, std::move(done));
}

absl::Status ModelManager::RefreshAll() {
  absl::Status status = FollowAll();
  if (!status.ok()) metrics_.ReloadFailed(Reload::kModels);
  return status;
}

absl::Status ModelManager::FollowAll() {
  std::vector<PassedOver> passed_over;
  const auto found = ScanRepository(options_.root, &passed_over);
  if (!found.ok()) {
    // A volume may be away for a moment, which is no reason to withdraw what is served.
    Log(LogLevel::kWarning, "model repository not read",
        {{"error", std::string(found.status().message())}});
    return found.status();
  }
  WarnOf(passed_over);
  const std::vector<ModelDirectory> wanted = Wanted(*found);
  absl::Status status = Follow(wanted);
  // What is gone is served until its successor can be, and may have been in its way.
  const bool room = ForgetWhatIsGone(*found);
  if (room && absl::IsResourceExhausted(status)) status = Follow(wanted);
  return status;
}

// Says in the log once what lies in the repository and is not served.
void ModelManager::WarnOf(const std::vector<PassedOver>& passed_over) {
  for (const PassedOver& one : passed_over) {
    if (passed_over_.contains(one)) continue;
    Log(LogLevel::kWarning, "directory of the model repository passed over",
        {{"directory", one.directory}, {"because", one.because}});
  }
  passed_over_ = {passed_over.begin(), passed_over.end()};
}

// Returns what was found, without the models that were unloaded and have not changed since.
std::vector<ModelDirectory> ModelManager::Wanted(const std::vector<ModelDirectory>& found) {
  for (auto& [model, stamps] : unloaded_) {
    if (!stamps) stamps = StampsOf(found, model);
  }
  std::erase_if(unloaded_,
                [&](const auto& entry) { return StampsOf(found, entry.first) != entry.second; });
  std::vector<ModelDirectory> wanted;
  for (const ModelDirectory& directory : found) {
    if (!unloaded_.contains(directory.name)) wanted.push_back(directory);
  }
  return wanted;
}

absl::Status ModelManager::LoadAgain(const std::string& model) {
  const auto found = ScanRepository(options_.root);
  if (!found.ok()) return found.status();
  std::vector<ModelDirectory> of_model;
  for (const ModelDirectory& directory : *found) {
    if (directory.name == model) of_model.push_back(directory);
  }
  if (of_model.empty()) {
    return absl::NotFoundError("failed to load " + Quoted(model) + ": no such model in " +
                               options_.root.path);
  }
  unloaded_.erase(model);
  std::erase_if(known_, [&](const auto& entry) { return entry.first.first == model; });
  absl::Status status = Follow(of_model);
  if (status.ok()) return status;
  return {status.code(), "failed to load " + Quoted(model) + ": " + std::string(status.message())};
}

absl::Status ModelManager::UnloadAll(const std::string& model) {
  bool any = false;
  for (const VersionStatus& version : repository_.Index()) {
    if (version.name != model) continue;
    any = true;
    repository_.Withdraw(model, version.version, "unloaded");
    Log(LogLevel::kInfo, "model unloaded", {{"model", model}, {"version", version.version}});
  }
  if (!any) return absl::NotFoundError("failed to unload " + Quoted(model) + ": no such model");
  std::erase_if(known_, [&](const auto& entry) { return entry.first.first == model; });
  const auto found = ScanRepository(options_.root);
  unloaded_[model] = std::nullopt;
  if (found.ok()) unloaded_[model] = StampsOf(*found, model);
  observer_(model, false);
  return absl::OkStatus();
}

// Serves the chosen versions of `found`, and no other versions of their models. Returns the first
// error.
absl::Status ModelManager::Follow(const std::vector<ModelDirectory>& found) {
  for (const ModelDirectory& directory : found) {
    const auto known = known_.find({directory.name, directory.version});
    if (known != known_.end() && known->second.try_again) known_.erase(known);
  }
  // All versions are announced before the first is loaded, which may take long.
  for (const ModelDirectory& directory : Choose(found)) {
    if (known_.contains({directory.name, directory.version})) continue;
    repository_.Announce(directory.name, directory.version);
    Observe(directory.name);
  }
  std::set<Key> failures;
  absl::Status status = LoadChanged(found, failures);
  std::set<Key> chosen;
  for (const ModelDirectory& directory : Choose(found, failures)) {
    chosen.insert({directory.name, directory.version});
  }
  for (const ModelDirectory& directory : found) {
    if (chosen.contains({directory.name, directory.version})) continue;
    if (!repository_.Served(directory.name, directory.version)) continue;
    Withdraw(directory.name, directory.version);
  }
  status.Update(CheckChoice(found));
  return status;
}

// Returns OK, or NOT_FOUND that names a model of which the version policy asks for no version that
// there is.
absl::Status ModelManager::CheckChoice(const std::vector<ModelDirectory>& found) {
  std::map<std::string, std::string> versions;
  for (const ModelDirectory& directory : found) {
    std::string& list = versions[directory.name];
    list += (list.empty() ? "" : ", ") + std::to_string(directory.version);
  }
  for (const ModelDirectory& directory : options_.versions.Choose(found)) {
    versions.erase(directory.name);
    unchosen_.erase(directory.name);
  }
  absl::Status status;
  for (const auto& [model, list] : versions) {
    absl::Status none = absl::NotFoundError("the version policy asks for none of the versions " +
                                            list + " of model " + Quoted(model));
    if (unchosen_.insert(model).second) {
      Log(LogLevel::kWarning, "model not served", {{"error", std::string(none.message())}});
    }
    status.Update(none);
  }
  return status;
}

absl::Status ModelManager::LoadChanged(const std::vector<ModelDirectory>& found,
                                       std::set<Key>& failures) {
  absl::Status first_error;
  for (bool failed = true; failed;) {
    failed = false;
    for (const ModelDirectory& directory : Choose(found, failures)) {
      const Key key{directory.name, directory.version};
      const auto known = known_.find(key);
      if (known != known_.end() && known->second.stamp == StampOf(directory)) continue;
      if (queue_.closed()) return LoadQueue::Refused();
      absl::Status status = LoadOne(directory);
      first_error.Update(status);
      if (status.ok()) continue;
      failed = true;
      failures.insert(key);
    }
    // After a failure all are chosen once more: where the latest version is broken, the one before
    // it is chosen.
  }
  return first_error;
}

std::vector<ModelDirectory> ModelManager::Choose(const std::vector<ModelDirectory>& found,
                                                 const std::set<Key>& failures) const {
  std::vector<ModelDirectory> sound;
  for (const ModelDirectory& directory : found) {
    const Key key{directory.name, directory.version};
    const auto known = known_.find(key);
    // Files that are being copied change all the time: none is loaded twice in one go.
    const bool broken = known != known_.end() && known->second.broken &&
                        (failures.contains(key) || known->second.stamp == StampOf(directory)) &&
                        !repository_.Served(directory.name, directory.version);
    if (!broken) sound.push_back(directory);
  }
  return options_.versions.Choose(sound);
}

absl::Status ModelManager::LoadOne(const ModelDirectory& directory) {
  Known& known = known_[{directory.name, directory.version}];
  known.stamp = StampOf(directory);
  repository_.Announce(directory.name, directory.version);
  auto model = TryLoad(directory);
  absl::Status status = model.status();
  known.broken = !status.ok();
  known.try_again = absl::IsResourceExhausted(status);
  metrics_.ForModel(directory.name, directory.version).LoadEnded(status.ok());
  if (status.ok()) {
    repository_.Publish(*std::move(model));
  } else {
    Log(LogLevel::kError, "model not loaded",
        {{"model", directory.name},
         {"version", directory.version},
         {"error", std::string(status.message())}});
    repository_.Failed(directory.name, directory.version, std::string(status.message()));
  }
  Observe(directory.name);
  return status;
}

absl::StatusOr<std::unique_ptr<ServedModel>> ModelManager::TryLoad(
    const ModelDirectory& directory) const {
  const std::string what =
      "model " + Quoted(directory.name) + " version " + std::to_string(directory.version);
  if (!directory.refused.empty()) return absl::FailedPreconditionError(directory.refused);
  absl::StatusOr<std::unique_ptr<ServedModel>> model;
  absl::Status status = Guarded(what, [&] {
    model = loader_(directory, [this, &what](int64_t bytes) { return CheckRoom(bytes, what); });
    return model.status();
  });
  if (!status.ok()) return status;
  (*model)->versions = options_.versions.ChoiceFor(directory.name);
  return model;
}

void ModelManager::Withdraw(const std::string& model, int64_t version) {
  constexpr const char* kReason = "the version policy has chosen others";
  repository_.Withdraw(model, version, kReason);
  known_.erase({model, version});
  Log(LogLevel::kInfo, "model withdrawn",
      {{"model", model}, {"version", version}, {"because", kReason}});
  Observe(model);
}

void ModelManager::Observe(const std::string& model) {
  observer_(model, repository_.Find(model, 0).ok());
}

bool ModelManager::ForgetWhatIsGone(const std::vector<ModelDirectory>& found) {
  std::set<Key> there;
  std::set<std::string> models;
  for (const ModelDirectory& directory : found) {
    there.insert({directory.name, directory.version});
    models.insert(directory.name);
  }
  std::erase_if(unchosen_, [&](const std::string& model) { return !models.contains(model); });
  bool any = false;
  for (const VersionStatus& version : repository_.Index()) {
    const Key key{version.name, version.version};
    if (there.contains(key)) continue;
    any = true;
    repository_.Forget(version.name, version.version);
    known_.erase(key);
    Log(LogLevel::kInfo, "model withdrawn",
        {{"model", version.name},
         {"version", version.version},
         {"because", "its directory is gone"}});
    Observe(version.name);
  }
  return any;
}

absl::Status ModelManager::CheckRoom(int64_t added, const std::string& what) const {
  if (options_.max_model_bytes == 0) return absl::OkStatus();
  const auto room = [this] { return options_.max_model_bytes - repository_.weight_bytes(); };
  // A model that was replaced or withdrawn a moment ago is gone in a moment.
  if (added > room()) repository_.AwaitRetired(SteadyClock().Now() + options_.patience);
  const int64_t left = std::max<int64_t>(0, room());
  if (added <= left) return absl::OkStatus();
  const auto shown = [](int64_t bytes) { return FormatBytes(static_cast<double>(bytes)); };
  return absl::ResourceExhaustedError(
      what + " needs " + shown(added) + " for its weights, but " + shown(left) + " are left of " +
      shown(options_.max_model_bytes) +
      ": the rest is taken by what is loaded, models included that were replaced and still answer; "
      "unload another model first, or raise the memory limit or max_model_bytes");
}

}  // namespace linserve
