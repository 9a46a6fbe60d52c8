#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "core/threads/clock.h"
#include "core/threads/mutex.h"

namespace linserve {

// Checks whether a listener of this process still takes connections. gRPC 1.51's stops doing so
// once the process has been out of descriptors for a moment (CVE-2023-4785), and says nothing of
// it.
class ListenerCheck {
 public:
  // Checks the listener at a port of this machine; a wildcard host is asked by its loopback
  // address.
  ListenerCheck(const std::string& host, int port, Clock& clock = SteadyClock());

  // Connects, and waits a moment for any byte or for the end; a good answer holds for a second.
  // Returns false once that has failed for ten seconds: a machine that is only slow is not given
  // up.
  bool Accepts();

 private:
  bool Try() const;

  const std::string host_;
  const int port_;
  Clock& clock_;
  Mutex mutex_;
  std::optional<TimePoint> good_ ABSL_GUARDED_BY(mutex_);     // when it last answered
  std::optional<TimePoint> failing_ ABSL_GUARDED_BY(mutex_);  // since when it fails
};

}  // namespace linserve
