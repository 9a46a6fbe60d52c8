#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/threads/mutex.h"
#include "program/serve/settings.h"

namespace linserve {

// Holds what a server runs with: its settings, with what was planned in the place of what they
// leave open. Thread-safe.
class LiveConfig {
 public:
  // `settings` must outlive it. `planned` is their configuration with what was planned.
  LiveConfig(Settings& settings, Config planned)
      : settings_(settings), config_(std::move(planned)) {}

  Config Get() const;

  // Describes the options as they were read last, and names the file that they were read from.
  std::vector<OptionTable::Description> Describe() const;
  std::string file() const;

  // Reads the settings again, and takes what may change while the server runs. Returns what
  // differs. An error, after which nothing has changed, says what is wrong with them.
  absl::StatusOr<std::vector<OptionTable::Change>> Reload();

 private:
  mutable Mutex mutex_;
  Settings& settings_ ABSL_GUARDED_BY(mutex_);
  Config config_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace linserve
