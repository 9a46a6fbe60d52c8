#include "rpc/grpc_drain.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace linserve {

void AwaitQuiet(const Inflight& inflight, std::chrono::system_clock::time_point deadline) {
  constexpr std::chrono::milliseconds kQuiet(200);
  constexpr std::chrono::seconds kLongest(1);  // for callers that never cease
  const auto end = std::min(deadline, std::chrono::system_clock::now() + kLongest);
  int64_t seen = -1;
  for (int64_t ever = inflight.requests_ever();
       ever != seen && std::chrono::system_clock::now() + kQuiet < end;
       ever = inflight.requests_ever()) {
    seen = ever;
    std::this_thread::sleep_for(kQuiet);
  }
}

void AwaitIdle(const Inflight& inflight, std::chrono::system_clock::time_point deadline) {
  while (inflight.requests() > 0 && std::chrono::system_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

HangUpLater::HangUpLater(std::chrono::nanoseconds pause, int port, const std::string& unix_socket)
    : connections_(port, unix_socket), periodic_([this, pause, waited = false]() mutable {
        if (!std::exchange(waited, true)) return pause;
        connections_.HangUpOnAll();
        return std::chrono::nanoseconds(std::chrono::milliseconds(100));
      }) {}

}  // namespace linserve
