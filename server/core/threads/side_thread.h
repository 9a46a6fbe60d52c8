#pragma once

#include <cstddef>
#include <deque>
#include <thread>

#include "absl/functional/any_invocable.h"
#include "core/threads/mutex.h"

namespace linserve {

// Runs jobs in their order on a thread of its own. Its destructor waits until all are done.
class SideThread {
 public:
  using Job = absl::AnyInvocable<void()>;

  // With `most` jobs waiting, Add() waits.
  explicit SideThread(size_t most);
  ~SideThread();
  SideThread(const SideThread&) = delete;
  SideThread& operator=(const SideThread&) = delete;

  // Hands the thread a job. A job that throws is reported, and the next one is run.
  void Add(Job job);

  // Waits until all jobs are done that were added.
  void Wait();

 private:
  void Run();

  const size_t most_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<Job> jobs_ ABSL_GUARDED_BY(mutex_);  // the first one is being run
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace linserve
