#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "batching/clock.h"
#include "core/mutex.h"

namespace linserve {

// Whether a listener of this process still takes connections. gRPC 1.51's does not any more once
// the process has been out of descriptors for a moment (CVE-2023-4785), and says nothing of it.
class ListenerCheck {
 public:
  // On the machine itself; a wildcard host is asked by its loopback address.
  ListenerCheck(const std::string& host, int port, Clock& clock = SteadyClock());

  // Connects, and waits a moment for any byte or for the end; a good answer holds for a second.
  // False once that has failed for ten seconds: a machine that is only slow is not given up.
  bool Accepts();

 private:
  bool Try() const;

  const std::string host_;
  const int port_;
  Clock& clock_;
  Mutex mutex_;
  std::optional<TimePoint> good_ LINSERVE_GUARDED_BY(mutex_);     // the last time
  std::optional<TimePoint> failing_ LINSERVE_GUARDED_BY(mutex_);  // since when
};

}  // namespace linserve
