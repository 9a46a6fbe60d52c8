#pragma once

#include <chrono>
#include <cstdint>

#include "core/periodic.h"
#include "rpc/channelz.h"
#include "telemetry/metrics.h"

namespace linserve {

// Ends connections whose caller resets calls faster than they can be dropped (CVE-2023-44487).
// gRPC 1.51 counts a call that was reset as closed, though all of the work for it is still to be
// done, so that the bound on streams does not hold for those. Its channelz figures tell of them.
class ResetGuard {
 public:
  // For all servers of this process. A connection may have four times `max_streams` calls that are
  // not done with. `metrics` must outlive the guard.
  ResetGuard(int64_t max_streams, Metrics& metrics);

 private:
  // Returns the pause until the next one.
  std::chrono::nanoseconds Look();
  void HangUpOnFloods();

  const int64_t max_calls_;
  Metrics& metrics_;
  Connections connections_;
  Periodic periodic_;
};

}  // namespace linserve
