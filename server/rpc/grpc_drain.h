#pragma once

#include <chrono>
#include <string>

#include "core/threads/periodic.h"
#include "rpc/guards/connections.h"
#include "serving/inflight.h"

namespace linserve {

// This header has what ends a gRPC server's calls in order.

// Waits until callers have stopped calling. Whoever was answered last calls again now, and is told
// UNAVAILABLE; a call that comes while gRPC ends its connections would be told CANCELLED, with
// which nobody tries another server.
void AwaitQuiet(const Inflight& inflight, std::chrono::system_clock::time_point deadline);

// Returns once nothing is in flight, answers that are still written included.
void AwaitIdle(const Inflight& inflight, std::chrono::system_clock::time_point deadline);

// Ends all connections after a while, and again until it is destroyed. gRPC closes a connection
// only when what it had begun to write is written, which takes as long as a reader stalls.
class HangUpLater {
 public:
  // The connections are those that Connections' constructor names.
  HangUpLater(std::chrono::nanoseconds pause, int port, const std::string& unix_socket);

 private:
  Connections connections_;
  Periodic periodic_;
};

}  // namespace linserve
