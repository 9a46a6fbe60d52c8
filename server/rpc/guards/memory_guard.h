#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "core/threads/periodic.h"
#include "rpc/guards/connections.h"
#include "telemetry/metrics.h"

namespace linserve {

// Ends connections whose callers take the memory. gRPC keeps what no message of ours has a part in,
// and bounds it by connection, if at all: calls without a message, their metadata, calls that were
// reset, headers without an end (CVE-2023-33953). Callers can connect as often as they like.
// Whoever sends such headers is hung up on while memory grows fast; once it is nearly used up,
// those who probably take most of it are.
class MemoryGuard {
 public:
  // Guards the server at `port` and `unix_socket`, which are as in Connections, of a process that
  // may take `limit` bytes of memory. `metrics` must outlive the guard.
  MemoryGuard(int64_t limit, int port, const std::string& unix_socket, Metrics& metrics);

 private:
  // Looks once, and returns the pause until the next look.
  std::chrono::nanoseconds Look();
  // Returns the pause until the next look that memory asks for; throws where memory has run out.
  std::chrono::nanoseconds LookAt(int64_t used);
  // Ends connections, and returns whether there were any to end.
  bool HangUp();
  std::map<std::string, int64_t> Weigh();

  const int64_t most_;  // bytes beyond which connections are ended
  Metrics& metrics_;
  Connections connections_;
  int64_t used_ = 0;             // bytes at the last look
  std::set<std::string> ended_;  // names, since there was memory
  int64_t in_vain_ = 0;  // bytes up to which ending connections is known to give nothing back
  Periodic periodic_;
};

}  // namespace linserve
