#pragma once

#include <cstddef>
#include <deque>
#include <functional>

#include "batching/clock.h"
#include "core/mutex.h"

namespace linserve {

// As many threads as there are tasks, up to a bound: a task lasts as long as its connection is
// open, and a probe must not wait for those of others. Idle threads end.
class ElasticThreads {
 public:
  explicit ElasticThreads(size_t most) : most_(most) {}
  ~ElasticThreads() { End(TimePoint::max()); }
  ElasticThreads(const ElasticThreads&) = delete;
  ElasticThreads& operator=(const ElasticThreads&) = delete;

  // REQUIRES: End() was not called.
  void Run(std::function<void()> task);

  // Waits for the end of all tasks, those that wait for a thread included; false at the deadline.
  bool End(TimePoint deadline);

 private:
  void Work();

  const size_t most_;
  Mutex mutex_;
  CondVar changed_;
  CondVar none_left_;
  std::deque<std::function<void()>> tasks_ LINSERVE_GUARDED_BY(mutex_);
  size_t threads_ LINSERVE_GUARDED_BY(mutex_) = 0;
  size_t idle_ LINSERVE_GUARDED_BY(mutex_) = 0;
  bool ended_ LINSERVE_GUARDED_BY(mutex_) = false;
};

}  // namespace linserve
