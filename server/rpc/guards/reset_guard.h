#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "core/threads/periodic.h"
#include "rpc/guards/channelz.h"
#include "telemetry/metrics.h"

namespace linserve {

// Ends connections whose caller resets calls faster than they can be dropped (CVE-2023-44487). gRPC
// 1.51 counts a call that was reset as closed, though all of the work for it is still to be done,
// so that the bound on streams does not hold for such calls. gRPC's channelz figures tell of them.
class ResetGuard {
 public:
  // Guards all servers of this process. A connection may have four times `max_streams` calls that
  // are not done with. `unix_socket` is the path of the servers' Unix socket; empty: they have
  // none. `metrics` must outlive the guard.
  ResetGuard(int64_t max_streams, std::string unix_socket, Metrics& metrics);

 private:
  // Looks once, and returns the pause until the next look.
  std::chrono::nanoseconds Look();
  void HangUpOnFloods();
  void HungUp(const std::string& peer);

  const int64_t max_calls_;
  const std::string unix_socket_;
  Metrics& metrics_;
  Connections connections_;
  Periodic periodic_;
};

}  // namespace linserve
