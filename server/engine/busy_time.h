#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

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
    return TotalLocked(now);
  }

  // Returns the time since this was last called, of each of the `most`.
  std::chrono::nanoseconds TakeMean(TimePoint now) {
    MutexLock lock(mutex_);
    // Another thread may have asked with a later time.
    const std::chrono::nanoseconds total = std::max(taken_, TotalLocked(now));
    return (total - std::exchange(taken_, total)) / most_;
  }

 private:
  std::chrono::nanoseconds TotalLocked(TimePoint now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return total_ + std::min(busy_, most_) * (now - changed_);
  }

  void Change(TimePoint now, int64_t by) {
    MutexLock lock(mutex_);
    total_ = TotalLocked(now);
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
