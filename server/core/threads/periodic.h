#pragma once

#include <chrono>
#include <functional>
#include <thread>

#include "core/threads/mutex.h"

namespace linserve {

// Runs a task again and again on a thread of its own, until the Periodic is destroyed. Its
// destructor waits for a run that has begun, but not for a pause to end.
class Periodic {
 public:
  // Runs the task, and returns the pause until it runs again. A task that throws runs again after a
  // second.
  using Task = std::function<std::chrono::nanoseconds()>;

  explicit Periodic(Task task);
  ~Periodic();
  Periodic(const Periodic&) = delete;
  Periodic& operator=(const Periodic&) = delete;

 private:
  void Run();

  const Task task_;
  Mutex mutex_;
  CondVar stop_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace linserve
