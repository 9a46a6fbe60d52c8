#pragma once

#include <chrono>

#include "core/threads/mutex.h"

namespace linserve {

using TimePoint = std::chrono::steady_clock::time_point;

// Tells the time as batching sees it, so that tests decide what time it is.
class Clock {
 public:
  virtual ~Clock() = default;

  virtual TimePoint Now() const = 0;

  // Waits on `condition` until it is notified or the time has come. May wake for no reason.
  virtual void WaitUntil(MutexLock& lock, CondVar& condition, TimePoint time) = 0;
};

// Returns std::chrono::steady_clock, shared by the whole process.
Clock& SteadyClock();

}  // namespace linserve
