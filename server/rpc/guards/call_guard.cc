#include "rpc/guards/call_guard.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "core/threads/guarded.h"
#include "core/threads/thread_time.h"

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
  const auto begin = ThreadTime();
  bool many = true;  // calls
  // Perhaps no memory is left: the next look may have some.
  RunGuarded("a look at connections", [&] { many = HangUpOnFloods() > max_all_ / 2; });
  // With thousands of connections a look takes milliseconds, so looks take a twentieth of a core at
  // most; a fifth while tens of thousands of calls may begin in a second. Where a flood holds
  // processors and locks, a look is long and does little: what it waits for must not delay the
  // next.
  const auto taken = ThreadTime() - begin;
  return many ? std::max<std::chrono::nanoseconds>(kShortPause, 4 * taken)
              : std::max<std::chrono::nanoseconds>(kPause, 20 * taken);
}

int64_t CallGuard::HangUpOnFloods() {
  constexpr std::string_view kWhy = "reset calls faster than they can be dropped";
  const std::string& local = connections_.unix_socket();
  std::vector<ConnectionFigures> connections = FiguresOfConnections(local);
  int64_t all = 0;
  std::set<std::string> floods;
  for (const ConnectionFigures& figures : connections) {
    all += figures.open_calls;
    if (figures.open_calls > max_calls_) floods.insert(figures.caller);
  }
  // By the Unix socket one at a time, since a connection that has been hung up on counts until its
  // calls are dropped.
  if (floods.erase(local) > 0) metrics_.ResetFloods(connections_.HangUpOnMostResets(kWhy));
  if (!floods.empty()) metrics_.ResetFloods(connections_.HangUp(floods, kWhy));
  if (all > max_all_) {
    metrics_.ResetFloods(connections_.HangUp(ThoseWithMost(std::move(connections), all),
                                             "has the most of too many calls"));
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
    most.insert(figures.caller);
  }
  return most;
}

}  // namespace linserve
