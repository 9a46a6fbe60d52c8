#include "rpc/guards/reset_guard.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <string>
#include <utility>

#include "telemetry/log.h"

namespace linserve {
namespace {

constexpr std::chrono::milliseconds kPause(100);

}  // namespace

ResetGuard::ResetGuard(int64_t max_streams, std::string unix_socket, Metrics& metrics)
    : max_calls_(4 * max_streams),
      unix_socket_(std::move(unix_socket)),
      metrics_(metrics),
      periodic_([this] { return Look(); }) {}

std::chrono::nanoseconds ResetGuard::Look() {
  const auto begin = std::chrono::steady_clock::now();
  HangUpOnFloods();
  // With thousands of connections a look takes milliseconds, so looks take a twentieth of a core at
  // most.
  return std::max<std::chrono::nanoseconds>(kPause,
                                            20 * (std::chrono::steady_clock::now() - begin));
}

void ResetGuard::HangUpOnFloods() {
  try {
    const Floods floods = ConnectionsWithMoreCallsThan(max_calls_);
    for (const Endpoint& peer : floods.peers) {
      // The peer may have left by itself.
      if (connections_.HangUp(peer) > 0) HungUp(peer.ToString());
    }
    // One at a time, since a connection that has been hung up on counts until its calls are
    // dropped.
    if (floods.local && connections_.HangUpLocal(unix_socket_)) HungUp(unix_socket_);
  } catch (const std::exception& error) {  // perhaps no memory is left: the next look may have some
    Log(LogLevel::kWarning, "connections not looked at", {{"error", std::string(error.what())}});
  }
}

void ResetGuard::HungUp(const std::string& peer) {
  metrics_.ResetFlood();
  Log(LogLevel::kWarning, "a caller reset calls faster than they can be dropped; hung up",
      {{"peer", peer}});
}

}  // namespace linserve
