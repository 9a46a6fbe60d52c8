#include "program/serve/live_config.h"

#include <nlohmann/json.hpp>

namespace linserve {

Config LiveConfig::Get() const {
  MutexLock lock(mutex_);
  return config_;
}

std::vector<OptionTable::Description> LiveConfig::Describe() const {
  MutexLock lock(mutex_);
  return settings_.table.Describe();
}

std::string LiveConfig::file() const {
  MutexLock lock(mutex_);
  return settings_.sources.file;
}

absl::StatusOr<std::vector<OptionTable::Change>> LiveConfig::Reload() {
  Settings fresh;
  {
    MutexLock lock(mutex_);
    fresh.sources = settings_.sources;
  }
  // A file may take its time, such as a pipe, and nobody who asks for the configuration waits for
  // it.
  if (absl::Status status = fresh.Read(); !status.ok()) return status;
  MutexLock lock(mutex_);
  std::vector<OptionTable::Change> changes = settings_.table.Adopt(fresh.table);
  OptionTable table;
  config_.Bind(table);
  for (OptionTable::Change& change : changes) {
    // What the memory plan leaves is planned at the start.
    if (change.name == "max_inflight_bytes" && settings_.config.grpc.inflight.max_bytes == 0) {
      change.taken = false;
    }
    if (!change.taken) continue;
    absl::Status status = table.Set(change.name, nlohmann::json::parse(change.after), "SIGHUP");
    if (!status.ok()) return status;
  }
  return changes;
}

}  // namespace linserve
