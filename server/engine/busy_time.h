#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "core/threads/clock.h"
#include "core/threads/mutex.h"

namespace linserve {

// Adds up how long workers have computed, counting while they do: at most `most` at a time, so many
// as do not share their processors. Thread-safe.
class BusyTime {
 public:
  explicit BusyTime(int64_t most) : most_(most) {}

  void Begin(TimePoint now) { Change(now, 1); }
  void End(TimePoint now) { Change(now, -1); }

  std::chrono::nanoseconds Total(TimePoint now) const {
    MutexLock lock(mutex_);
    return total_ + std::min(busy_, most_) * (now - changed_);
  }

  // Returns the time since this was last called, of each of the `most`.
  std::chrono::nanoseconds TakeMean(TimePoint now) {
    const std::chrono::nanoseconds total = Total(now);
    MutexLock lock(mutex_);
    const std::chrono::nanoseconds since = total - taken_;
    taken_ = std::max(taken_, total);
    return std::max<std::chrono::nanoseconds>(since / most_, std::chrono::nanoseconds(0));
  }

 private:
  void Change(TimePoint now, int64_t by) {
    MutexLock lock(mutex_);
    total_ += std::min(busy_, most_) * (now - changed_);
    busy_ += by;
    changed_ = now;
  }

  const int64_t most_;
  mutable Mutex mutex_;
  std::chrono::nanoseconds total_ ABSL_GUARDED_BY(mutex_){0};
  std::chrono::nanoseconds taken_ ABSL_GUARDED_BY(mutex_){0};
  int64_t busy_ ABSL_GUARDED_BY(mutex_) = 0;
  TimePoint changed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace linserve
