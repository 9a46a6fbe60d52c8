#pragma once

#include <cstddef>
#include <deque>
#include <functional>

#include "core/threads/clock.h"
#include "core/threads/mutex.h"

namespace linserve {

// Runs tasks on as many threads as there are tasks, up to a bound: a task lasts as long as its
// connection is open, and a probe must not wait for other connections' tasks. Idle threads end, but
// for one. A task that throws is over, and its thread goes on.
class ElasticThreads {
 public:
  explicit ElasticThreads(size_t most) : most_(most) {}
  ~ElasticThreads() { End(TimePoint::max()); }
  ElasticThreads(const ElasticThreads&) = delete;
  ElasticThreads& operator=(const ElasticThreads&) = delete;

  // Runs the task on a thread that is free or new; past the bound it waits for one. Throws, and
  // forgets the task, where the system has none to begin with, or no memory. REQUIRES: End() was
  // not called.
  void Run(std::function<void()> task);

  // Waits for the end of all tasks, those that wait for a thread included. Returns false at the
  // deadline.
  bool End(TimePoint deadline);

 private:
  void Work();

  const size_t most_;
  Mutex mutex_;
  CondVar changed_;
  CondVar none_left_;
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  size_t threads_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t idle_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace linserve
