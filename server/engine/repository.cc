#include "engine/repository.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <tuple>
#include <utility>

#include "core/quote.h"
#include "telemetry/log.h"

namespace linserve {
namespace {

namespace fs = std::filesystem;

// No overload that throws: what cannot be looked at, a link to itself say, is no model.
bool IsModel(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path / "config.json", error);
}

std::optional<int64_t> VersionNumber(const std::string& name) {
  int64_t version = 0;
  const char* end = name.data() + name.size();
  const auto parsed = std::from_chars(name.data(), end, version);
  if (parsed.ec != std::errc() || parsed.ptr != end || version < 1) return std::nullopt;
  // "01" beside "1" would be the same version twice.
  if (std::to_string(version) != name) return std::nullopt;
  return version;
}

absl::StatusOr<std::vector<fs::path>> Subdirectories(const fs::path& path) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code unknown;
    if (entry->is_directory(unknown)) found.push_back(entry->path());
  }
  if (error) return absl::NotFoundError("cannot read " + path.string() + ": " + error.message());
  return found;
}

void ScanModel(const fs::path& path, std::vector<ModelDirectory>& found) {
  const std::string name = path.filename();
  if (IsModel(path)) {
    found.push_back({name, 1, path});
    return;
  }
  const auto entries = Subdirectories(path);
  if (!entries.ok()) {
    // Such as lost+found, which volumes have and only root may read.
    Log(LogLevel::kWarning, "directory of the model repository skipped",
        {{"error", std::string(entries.status().message())}});
    return;
  }
  for (const fs::path& entry : *entries) {
    const auto version = VersionNumber(entry.filename());
    if (version && IsModel(entry)) found.push_back({name, *version, entry});
  }
}

}  // namespace

absl::StatusOr<std::vector<ModelDirectory>> ScanRepository(const std::string& root) {
  std::error_code error;
  if (!fs::is_directory(root, error)) {
    return absl::NotFoundError("the model repository " + root +
                               " is not a directory; give one with --model-repository");
  }
  const auto entries = Subdirectories(root);
  if (!entries.ok()) return entries.status();
  std::vector<ModelDirectory> found;
  for (const fs::path& entry : *entries) ScanModel(entry, found);
  if (found.empty()) {
    return absl::NotFoundError(
        "no model in " + root + ": expected " + root + "/NAME/config.json or " + root +
        "/NAME/VERSION/config.json; `linserve init --help` tells how to make one");
  }
  std::sort(found.begin(), found.end(), [](const ModelDirectory& a, const ModelDirectory& b) {
    return std::tie(a.name, a.version) < std::tie(b.name, b.version);
  });
  return found;
}

ModelRepository::ModelRepository(std::vector<ModelDirectory> announced)
    : announced_(std::move(announced)) {}

void ModelRepository::Add(std::shared_ptr<const ServedModel> model) {
  MutexLock lock(mutex_);
  models_.push_back(std::move(model));
  std::sort(models_.begin(), models_.end(), [](const auto& a, const auto& b) {
    return std::tie(a->name, a->version) < std::tie(b->name, b->version);
  });
}

absl::StatusOr<std::shared_ptr<const ServedModel>> ModelRepository::Find(const std::string& name,
                                                                         int64_t version) const {
  MutexLock lock(mutex_);
  std::string wanted = name;
  if (wanted.empty()) {
    const bool one = std::all_of(announced_.begin(), announced_.end(), [&](const auto& model) {
      return model.name == announced_[0].name;
    });
    if (!one || announced_.empty()) {
      return absl::InvalidArgumentError("no model was named and there are several; " +
                                        std::string(Unknown(name, version).message()));
    }
    wanted = announced_[0].name;
  }
  // In the order of versions, so the last match is the latest.
  const auto found = std::find_if(models_.rbegin(), models_.rend(), [&](const auto& model) {
    return model->name == wanted && (version == 0 || model->version == version);
  });
  if (found != models_.rend()) return *found;
  return Unknown(wanted, version);
}

std::vector<std::shared_ptr<const ServedModel>> ModelRepository::List() const {
  MutexLock lock(mutex_);
  return models_;
}

size_t ModelRepository::Drain(TimePoint deadline) {
  // All at once: while one is waited for, the others must not go on to accept.
  for (const auto& model : List()) model->engine->StopAccepting();
  size_t given_up = 0;
  for (const auto& model : List()) given_up += model->engine->Drain(deadline);
  return given_up;
}

absl::Status ModelRepository::Unknown(const std::string& name, int64_t version) const {
  std::string known;
  for (const ModelDirectory& model : announced_) {
    if (model.name == name && (version == 0 || model.version == version)) {
      return absl::UnavailableError("model " + Quoted(name) + " is loading; try again shortly");
    }
    known += (known.empty() ? "" : ", ") + model.name + " version " + std::to_string(model.version);
  }
  const std::string asked = version == 0 ? "" : " version " + std::to_string(version);
  return absl::NotFoundError("no model " + Quoted(name) + asked + "; there is " + known);
}

}  // namespace linserve
