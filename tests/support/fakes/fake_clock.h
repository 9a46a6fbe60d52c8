#pragma once

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "core/threads/clock.h"

namespace linserve {

// A FakeClock begins at this time.
inline constexpr TimePoint kStart{std::chrono::hours(1)};

// Tells a time that stands still until a test moves it.
class FakeClock : public Clock {
 public:
  TimePoint Now() const override {
    MutexLock lock(mutex_);
    return now_;
  }

  void WaitUntil(MutexLock& lock, CondVar& condition, TimePoint time) override {
    const Waiter self = {&condition, time};
    {
      MutexLock own(mutex_);
      if (now_ >= time) return;
      waiters_.push_back(self);
      changed_.NotifyAll();
    }
    condition.Wait(lock);
    MutexLock own(mutex_);
    waiters_.erase(std::find(waiters_.begin(), waiters_.end(), self));
  }

  // Moves time on, and returns when all whose time has come have woken.
  void Advance(std::chrono::nanoseconds by) {
    MutexLock lock(mutex_);
    now_ += by;
    while (true) {
      bool woken = true;
      for (const Waiter& waiter : waiters_) {
        if (waiter.time > now_) continue;
        woken = false;
        waiter.condition->NotifyAll();
      }
      if (woken) return;
      // All are woken again: one who is about to wait, but does not yet, has not heard it.
      lock.Unlock();
      std::this_thread::yield();
      lock.Lock();
    }
  }

  // Returns once so many threads wait until `time`.
  void AwaitWaiters(TimePoint time, int count = 1) {
    MutexLock lock(mutex_);
    while (std::count_if(waiters_.begin(), waiters_.end(),
                         [&](const Waiter& waiter) { return waiter.time == time; }) < count) {
      changed_.Wait(lock);
    }
  }

 private:
  struct Waiter {
    CondVar* condition;
    TimePoint time;

    bool operator==(const Waiter&) const = default;
  };

  mutable Mutex mutex_;
  CondVar changed_;
  TimePoint now_ ABSL_GUARDED_BY(mutex_) = kStart;
  std::vector<Waiter> waiters_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace linserve
