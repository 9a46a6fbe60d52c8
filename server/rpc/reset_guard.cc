#include "rpc/reset_guard.h"

#include <algorithm>
#include <chrono>

#include "rpc/channelz.h"
#include "telemetry/log.h"

namespace linserve {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPeriod(100);

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
    const auto begin = Clock::now();
    for (const Peer& peer : PeersWithMoreCallsThan(max_calls_)) {
      if (HangUp(peer) == 0) continue;  // it has left by itself
      metrics_.ResetFlood();
      Log(LogLevel::kWarning, "a caller reset calls faster than they can be dropped; hung up",
          {{"peer", peer.ToString()}});
    }
    // With thousands of connections a look takes milliseconds: a twentieth of a core at most.
    const auto end = Clock::now();
    const auto pause = std::max<Clock::duration>(kPeriod, 20 * (end - begin));
    lock.Lock();
    if (!stopping_) stop_.WaitUntil(lock, end + pause);
  }
}

}  // namespace linserve
