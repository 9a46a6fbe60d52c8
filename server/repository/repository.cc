#include "repository/repository.h"

#include <algorithm>

#include "core/strings/quote.h"
#include "core/strings/utf8.h"

namespace linserve {
namespace {

// Makes the text UTF-8: a fault may quote a file's bytes, and protobuf and JSON take UTF-8 alone. A
// list of all that is wrong with a model is cut: every answer about models would carry it.
std::string Printable(const std::string& reason) {
  constexpr size_t kLongest = 4096;
  const std::string text = AsUtf8(reason);
  const std::string_view shown = CutAtCharacter(text, kLongest);
  return std::string(shown) + (shown.size() < text.size() ? "..." : "");
}

absl::StatusOr<std::shared_ptr<const ServedModel>> IfReady(
    const std::shared_ptr<const ServedModel>& model) {
  if (model->engine->ready()) return model;
  return absl::UnavailableError("model " + Quoted(model->name) + " version " +
                                std::to_string(model->version) +
                                ": its device was lost, and it is being loaded again");
}

}  // namespace

void ModelRepository::SetState(const std::string& name, int64_t version, Entry& entry,
                               ModelState state, const std::string& reason) {
  entry.state = state;
  entry.reason = reason;
  metrics_.ForModel(name, version).SetState(state);
}

void ModelRepository::Announce(const std::string& name, int64_t version) {
  MutexLock lock(mutex_);
  Entry& entry = models_[name][version];
  if (!entry.model) SetState(name, version, entry, ModelState::kLoading, "");
}

void ModelRepository::Publish(std::unique_ptr<ServedModel> model) {
  std::shared_ptr<const ServedModel> shared = retirement_.Share(std::move(model));
  MutexLock lock(mutex_);
  Entry& entry = models_[shared->name][shared->version];
  SetState(shared->name, shared->version, entry, ModelState::kReady, "");
  entry.model.swap(shared);
}

void ModelRepository::Failed(const std::string& name, int64_t version, const std::string& reason) {
  MutexLock lock(mutex_);
  Entry& entry = models_[name][version];
  if (entry.model) {
    entry.reason = "the files changed, but cannot be loaded: " + Printable(reason);
  } else {
    SetState(name, version, entry, ModelState::kUnavailable, Printable(reason));
  }
}

void ModelRepository::Withdraw(const std::string& name, int64_t version,
                               const std::string& reason) {
  std::shared_ptr<const ServedModel> withdrawn;
  MutexLock lock(mutex_);
  const auto versions = models_.find(name);
  if (versions == models_.end()) return;
  const auto entry = versions->second.find(version);
  if (entry == versions->second.end()) return;
  withdrawn.swap(entry->second.model);
  SetState(name, version, entry->second, ModelState::kUnavailable, reason);
  metrics_.ForModel(name, version).SetState(std::nullopt);
}

void ModelRepository::Forget(const std::string& name, int64_t version) {
  Withdraw(name, version, "gone");
  MutexLock lock(mutex_);
  const auto versions = models_.find(name);
  if (versions == models_.end()) return;
  versions->second.erase(version);
  if (versions->second.empty()) models_.erase(versions);
  metrics_.ForgetModel(name, version);
}

std::string ModelRepository::NameOf(const std::string& given) const {
  MutexLock lock(mutex_);
  if (models_.contains(given)) return given;
  if (const auto alias = aliases_.find(given); alias != aliases_.end()) return alias->second;
  const size_t slash = given.rfind('/');
  std::string name = slash == std::string::npos ? given : given.substr(slash + 1);
  return models_.contains(name) ? name : given;
}

absl::StatusOr<std::shared_ptr<const ServedModel>> ModelRepository::Find(const std::string& name,
                                                                         int64_t version) const {
  MutexLock lock(mutex_);
  auto versions = models_.find(name);
  if (name.empty()) {
    if (models_.empty()) return absl::NotFoundError("there is no model");
    versions = OnlyOne();
    if (versions == models_.end()) {
      return absl::InvalidArgumentError("no model was named, and there are several: " + Known());
    }
  }
  if (versions == models_.end()) return Unserved(name, version);
  const Entry* latest = nullptr;  // that is served, its device lost or not
  for (const auto& [number, entry] : versions->second) {
    if (!entry.model || (version != 0 && version != number)) continue;
    if (!latest || entry.model->engine->ready() || !latest->model->engine->ready()) latest = &entry;
  }
  return latest ? IfReady(latest->model) : Unserved(versions->first, version);
}

std::shared_ptr<const ServedModel> ModelRepository::Served(const std::string& name,
                                                           int64_t version) const {
  MutexLock lock(mutex_);
  const auto versions = models_.find(name);
  if (versions == models_.end()) return nullptr;
  const auto entry = versions->second.find(version);
  return entry == versions->second.end() ? nullptr : entry->second.model;
}

std::vector<std::shared_ptr<const ServedModel>> ModelRepository::List() const {
  MutexLock lock(mutex_);
  std::vector<std::shared_ptr<const ServedModel>> served;
  for (const auto& [name, versions] : models_) {
    for (const auto& [version, entry] : versions) {
      if (entry.model) served.push_back(entry.model);
    }
  }
  return served;
}

std::vector<VersionStatus> ModelRepository::Index() const {
  MutexLock lock(mutex_);
  std::vector<VersionStatus> index;
  for (const auto& [name, versions] : models_) {
    for (const auto& [version, entry] : versions) {
      index.push_back({name, version, entry.state, entry.reason});
    }
  }
  return index;
}

absl::Status ModelRepository::Ready() const {
  MutexLock lock(mutex_);
  for (const auto& [name, versions] : models_) {
    absl::Status ready;
    for (const auto& [version, entry] : versions) {
      if (!entry.model) continue;
      ready = IfReady(entry.model).status();
      if (ready.ok()) break;
    }
    if (!ready.ok()) return ready;
  }
  return absl::OkStatus();
}

bool ModelRepository::stuck() const {
  const auto served = List();
  return std::any_of(served.begin(), served.end(),
                     [](const auto& model) { return model->engine->stuck(); });
}

size_t ModelRepository::Drain(TimePoint deadline) {
  {
    // All stop accepting at once: while one is waited for, the others must not go on to accept.
    MutexLock lock(mutex_);
    for (auto& [name, versions] : models_) {
      for (auto& [version, entry] : versions) {
        if (!entry.model) continue;
        SetState(name, version, entry, ModelState::kDraining, "the server is draining");
        entry.model->engine->StopAccepting();
      }
    }
  }
  size_t given_up = 0;
  for (const auto& model : List()) given_up += model->engine->Drain(deadline);
  return given_up + retirement_.Drain(deadline);
}

// Returns the only model, or of several the only one that is served or will be: others may be
// broken. Returns the end if there are more.
ModelRepository::Models::const_iterator ModelRepository::OnlyOne() const {
  auto only = models_.end();
  for (auto model = models_.begin(); model != models_.end(); ++model) {
    const auto counts = [](const auto& version) {
      return version.second.model || version.second.state == ModelState::kLoading;
    };
    if (std::none_of(model->second.begin(), model->second.end(), counts)) continue;
    if (only != models_.end()) return models_.end();
    only = model;
  }
  return only == models_.end() && models_.size() == 1 ? models_.begin() : only;
}

// Lists models, with their versions.
std::string ModelRepository::Known() const {
  constexpr size_t kMost = 512;  // bytes: there may be thousands
  std::string known;
  for (const auto& [name, versions] : models_) {
    for (const auto& [number, entry] : versions) {
      if (known.size() >= kMost) return known;
      known += (known.empty() ? "" : ", ") + name + " version " + std::to_string(number);
    }
  }
  return known.empty() ? "none" : known;
}

absl::Status ModelRepository::Unserved(const std::string& name, int64_t version) const {
  const Entry* latest = nullptr;
  if (const auto versions = models_.find(name); versions != models_.end()) {
    for (const auto& [number, entry] : versions->second) {
      // A version that is loading is preferred to others, because it will soon answer.
      const bool asked = version == 0 || version == number;
      if (asked && (latest == nullptr || latest->state != ModelState::kLoading)) latest = &entry;
    }
  }
  const std::string asked =
      Quoted(name) + (version == 0 ? "" : " version " + std::to_string(version));
  if (latest == nullptr) {
    return absl::NotFoundError("model " + asked + " is not found; there is " + Known());
  }
  if (latest->state == ModelState::kLoading) {
    return absl::UnavailableError("model " + asked + " is loading; try again shortly");
  }
  return absl::UnavailableError("model " + asked + " is not served: " + latest->reason);
}

}  // namespace linserve
