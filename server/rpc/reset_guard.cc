#include "rpc/reset_guard.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <string>

#include "telemetry/log.h"

namespace linserve {
namespace {

constexpr std::chrono::milliseconds kPause(100);

}  // namespace

ResetGuard::ResetGuard(int64_t max_streams, Metrics& metrics)
    : max_calls_(4 * max_streams), metrics_(metrics), periodic_([this] { return Look(); }) {}

std::chrono::nanoseconds ResetGuard::Look() {
  const auto begin = std::chrono::steady_clock::now();
  HangUpOnFloods();
  // With thousands of connections a look takes milliseconds: a twentieth of a core at most.
  return std::max<std::chrono::nanoseconds>(kPause,
                                            20 * (std::chrono::steady_clock::now() - begin));
}

void ResetGuard::HangUpOnFloods() {
  try {
    for (const Endpoint& peer : PeersWithMoreCallsThan(max_calls_)) {
      if (connections_.HangUp(peer) == 0) continue;  // it has left by itself
      metrics_.ResetFlood();
      Log(LogLevel::kWarning, "a caller reset calls faster than they can be dropped; hung up",
          {{"peer", peer.ToString()}});
    }
  } catch (const std::exception& error) {  // no memory is left, say: the next look may have some
    Log(LogLevel::kWarning, "connections not looked at", {{"error", std::string(error.what())}});
  }
}

}  // namespace linserve
