#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <thread>

#include "absl/status/status.h"
#include "core/threads/clock.h"
#include "core/threads/mutex.h"

namespace linserve {

// Does what is asked of a repository one after another, on a thread of its own.
class LoadQueue {
 public:
  using Work = std::function<absl::Status()>;
  // Called once for each task: on the queue's thread, or by what refuses it.
  using Done = std::function<void(const absl::Status&)>;

  // Starts the queue. Once the first task has come, it calls `look` whenever none has come
  // for as long as `poll`; 0: never.
  LoadQueue(std::chrono::nanoseconds poll, Work look);
  // Refuses what waits, and waits for what is under way.
  ~LoadQueue();
  LoadQueue(const LoadQueue&) = delete;
  LoadQueue& operator=(const LoadQueue&) = delete;

  void Add(Work work, Done done);

  // Refuses what waits, and what comes. What is under way may ask closed(), and end early.
  void Close();
  bool closed() const;
  static absl::Status Refused();  // UNAVAILABLE

  // Closes the queue, and waits for what is under way. At `deadline` it is answered as refused, and
  // abandoned: then this returns false.
  bool Drain(TimePoint deadline);

 private:
  struct Task {
    Work work;
    Done done;
  };

  void Run();

  const std::chrono::nanoseconds poll_;
  const Work look_;

  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<Task> waiting_ ABSL_GUARDED_BY(mutex_);
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;
  Done done_ ABSL_GUARDED_BY(mutex_);  // of the work under way; empty: it was answered
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace linserve
