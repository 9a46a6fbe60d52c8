#pragma once

#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "core/threads/periodic.h"
#include "rpc/guards/channelz.h"
#include "rpc/guards/connections.h"
#include "telemetry/metrics.h"

namespace linserve {

// Ends connections of callers who begin calls faster than they can be dropped. gRPC 1.51 counts a
// call that was reset, by the caller (CVE-2023-44487) or for a fault of the caller's, as closed,
// though all of the work for it is still to be done; and its bound on the streams of a connection
// holds only for callers who have confirmed it. Callers can have many connections, too. gRPC's
// channelz figures tell of all of them.
class CallGuard {
 public:
  // Guards the server at `port` and `unix_socket`, which are as in Connections, of a process that
  // may take `memory` bytes. A connection may have four times `max_streams` calls that are not done
  // with; all connections together may have one for each 256 KiB of the memory, and twice
  // `max_streams` at least. `metrics` must outlive the guard.
  CallGuard(int64_t max_streams, int64_t memory, int port, const std::string& unix_socket,
            Metrics& metrics);

 private:
  // Looks once, and returns the pause until the next look.
  std::chrono::nanoseconds Look();
  int64_t HangUpOnFloods();  // returns how many calls there were
  // Returns those without whom half of the calls that there may be are left, of `all` that there
  // are.
  std::set<std::string> ThoseWithMost(std::vector<ConnectionFigures> connections,
                                      int64_t all) const;

  const int64_t max_calls_;  // of a connection
  const int64_t max_all_;    // of all connections
  Metrics& metrics_;
  Connections connections_;
  Periodic periodic_;
};

}  // namespace linserve
