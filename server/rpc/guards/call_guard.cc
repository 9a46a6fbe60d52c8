#include "rpc/guards/call_guard.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "telemetry/log.h"

namespace linserve {
namespace {

constexpr int64_t kBytesOfCall = 256 << 10;

}  // namespace

CallGuard::CallGuard(int64_t max_streams, int64_t memory, int port, const std::string& unix_socket,
                     Metrics& metrics)
    : max_calls_(4 * max_streams),
      max_all_(std::max(2 * max_streams, memory / kBytesOfCall)),
      metrics_(metrics),
      connections_(port, unix_socket),
      periodic_([this] { return Look(); }) {}

std::chrono::nanoseconds CallGuard::Look() {
  constexpr std::chrono::milliseconds kPause(100);
  constexpr std::chrono::milliseconds kShortPause(10);
  const auto begin = std::chrono::steady_clock::now();
  bool many = true;  // calls
  try {
    many = HangUpOnFloods() > max_all_ / 2;
  } catch (const std::exception& error) {  // perhaps no memory is left: the next look may have some
    Log(LogLevel::kWarning, "connections not looked at", {{"error", std::string(error.what())}});
  }
  // With thousands of connections a look takes milliseconds, so looks take a twentieth of a core at
  // most; a fifth while tens of thousands of calls may begin in a second.
  const auto taken = std::chrono::steady_clock::now() - begin;
  return many ? std::max<std::chrono::nanoseconds>(kShortPause, 4 * taken)
              : std::max<std::chrono::nanoseconds>(kPause, 20 * taken);
}

int64_t CallGuard::HangUpOnFloods() {
  constexpr std::string_view kWhy = "reset calls faster than they can be dropped";
  std::vector<ConnectionFigures> connections = FiguresOfConnections();
  int64_t all = 0;
  bool local = false;
  std::set<std::string> floods;
  for (const ConnectionFigures& figures : connections) {
    all += figures.open_calls;
    if (figures.open_calls <= max_calls_) continue;
    if (figures.peer) {
      floods.insert(figures.peer->ToString());
    } else {
      local = true;
    }
  }
  HangUp(floods, kWhy);
  // One at a time, since a connection that has been hung up on counts until its calls are
  // dropped.
  if (local && connections_.HangUpOnMostResets()) HungUp(connections_.unix_socket(), kWhy);
  if (all > max_all_) {
    HangUp(ThoseWithMost(std::move(connections), all), "has the most of too many calls");
  }
  return all;
}

std::set<std::string> CallGuard::ThoseWithMost(std::vector<ConnectionFigures> connections,
                                               int64_t all) const {
  std::sort(connections.begin(), connections.end(),
            [](const auto& a, const auto& b) { return a.open_calls > b.open_calls; });
  std::set<std::string> most;
  for (const ConnectionFigures& figures : connections) {
    if (all <= max_all_ / 2) break;
    all -= figures.open_calls;
    most.insert(figures.peer ? figures.peer->ToString() : connections_.unix_socket());
  }
  return most;
}

void CallGuard::HangUp(const std::set<std::string>& callers, std::string_view why) {
  if (callers.empty()) return;
  for (const std::string& caller : connections_.HangUp(callers)) HungUp(caller, why);
}

void CallGuard::HungUp(const std::string& caller, std::string_view why) {
  metrics_.ResetFlood();
  Log(LogLevel::kWarning, "hung up on a caller", {{"peer", caller}, {"because", std::string(why)}});
}

}  // namespace linserve
