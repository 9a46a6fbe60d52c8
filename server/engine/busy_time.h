#pragma once

#include <chrono>
#include <cstdint>

#include "core/threads/clock.h"
#include "core/threads/mutex.h"

namespace linserve {

// Adds up how long workers have computed, counting while they do. Thread-safe.
class BusyTime {
 public:
  void Begin(TimePoint now) { Change(now, 1); }
  void End(TimePoint now) { Change(now, -1); }

  std::chrono::nanoseconds Total(TimePoint now) const {
    MutexLock lock(mutex_);
    return total_ + busy_ * (now - changed_);
  }

 private:
  void Change(TimePoint now, int64_t by) {
    MutexLock lock(mutex_);
    total_ += busy_ * (now - changed_);
    busy_ += by;
    changed_ = now;
  }

  mutable Mutex mutex_;
  std::chrono::nanoseconds total_ ABSL_GUARDED_BY(mutex_){0};
  int64_t busy_ ABSL_GUARDED_BY(mutex_) = 0;
  TimePoint changed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace linserve
