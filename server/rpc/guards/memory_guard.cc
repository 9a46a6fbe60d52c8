#include "rpc/guards/memory_guard.h"

#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <utility>

#include "core/system/memory.h"
#include "core/threads/guarded.h"
#include "core/threads/thread_time.h"
#include "rpc/guards/channelz.h"

namespace linserve {
namespace {

constexpr std::chrono::milliseconds kPause(50);
constexpr std::chrono::milliseconds kShortPause(10);
constexpr int64_t kMebibyte = int64_t{1} << 20;
// What gRPC takes of memory, at most: a reference of one byte to an entry of the table of headers
// becomes an entry of 64 bytes, an open call with its metadata some 64 KiB.
constexpr int64_t kBytesPerByte = 64;
constexpr int64_t kBytesPerCall = 64 << 10;
constexpr int64_t kLeastWeight = 64 * kMebibyte;  // of all who are ended at once

// Returns the bytes that are left free: floods take some 400 MB a second, and to end a call takes
// memory, too.
int64_t Margin(int64_t limit) { return std::clamp(limit / 4, 32 * kMebibyte, 1024 * kMebibyte); }

}  // namespace

MemoryGuard::MemoryGuard(int64_t limit, int port, const std::string& unix_socket, Metrics& metrics)
    : most_(limit - Margin(limit)),
      metrics_(metrics),
      connections_(port, unix_socket),
      periodic_([this] { return Look(); }) {}

std::chrono::nanoseconds MemoryGuard::Look() {
  const auto begin = ThreadTime();
  // What was freed is given back, so that it is seen.
  if (!ended_.empty()) malloc_trim(0);
  std::chrono::nanoseconds pause = kShortPause;
  // Perhaps no memory is left: the next look may have some.
  RunGuarded("a look at connections", [&] { pause = LookAt(AnonymousBytes()); });
  // With thousands of connections a look takes milliseconds, of which waiting is not counted: the
  // next look is the sooner needed the more others do.
  return std::max(pause, 4 * (ThreadTime() - begin));
}

std::chrono::nanoseconds MemoryGuard::LookAt(int64_t used) {
  constexpr int64_t kFast = 4 * kMebibyte;
  const bool grows = used - std::exchange(used_, used) >= kFast;
  // They are not always waiting to be read when somebody looks.
  if (grows) metrics_.MemoryFloods(connections_.HangUpOnEndlessHeaders());
  if (used <= most_) {
    ended_.clear();
    in_vain_ = 0;
    return grows || used > most_ / 2 ? kShortPause : kPause;
  }
  if (used <= in_vain_) return kPause;
  if (HangUp()) return 2 * kShortPause;
  // It is not by callers. Only what comes on top may be.
  in_vain_ = used + Margin(most_) / 4;
  ended_.clear();
  return kPause;
}

bool MemoryGuard::HangUp() {
  std::map<std::string, int64_t> weights = Weigh();
  // Whoever was hung up on has a weight until all of his calls are dropped.
  std::erase_if(weights, [this](const auto& entry) { return ended_.contains(entry.first); });
  int64_t heaviest = 0;
  for (const auto& [caller, weight] : weights) heaviest = std::max(heaviest, weight);
  std::set<std::string> chosen;
  int64_t together = 0;
  for (const auto& [caller, weight] : weights) {
    if (weight < heaviest / 2) continue;
    chosen.insert(caller);
    together += weight;
  }
  if (together < kLeastWeight) return false;
  metrics_.MemoryFloods(
      connections_.HangUp(chosen, "probably takes most of the memory, which is nearly used up"));
  ended_.merge(chosen);
  return true;
}

// Returns what each connection may take of memory. What comes by one that never had a whole message
// may be headers.
std::map<std::string, int64_t> MemoryGuard::Weigh() {
  const std::map<std::string, int64_t> received = connections_.BytesReceived();
  std::map<std::string, int64_t> weights;
  for (const ConnectionFigures& figures : FiguresOfConnections(connections_.unix_socket())) {
    const auto bytes = received.find(figures.caller);
    const int64_t sent = bytes == received.end() ? 0 : bytes->second;
    weights[figures.caller] +=
        figures.open_calls * kBytesPerCall + (figures.messages == 0 ? sent * kBytesPerByte : 0);
  }
  return weights;
}

}  // namespace linserve
