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
    : max_calls_(4 * max_streams), metrics_(metrics), thread_([this] { Run(); }) {}

ResetGuard::~ResetGuard() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  stop_.NotifyAll();
  thread_.join();
}

void ResetGuard::Run() {
  MutexLock lock(mutex_);
  while (!stopping_) {
    lock.Unlock();
    const auto begin = std::chrono::steady_clock::now();
    Look();
    // With thousands of connections a look takes milliseconds: a twentieth of a core at most.
    const auto end = std::chrono::steady_clock::now();
    const auto pause = std::max<std::chrono::nanoseconds>(kPause, 20 * (end - begin));
    lock.Lock();
    if (!stopping_) stop_.WaitUntil(lock, end + pause);
  }
}

void ResetGuard::Look() {
  try {
    for (const Peer& peer : PeersWithMoreCallsThan(max_calls_)) {
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
