#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "absl/base/thread_annotations.h"  // which clang's -Wthread-safety reads

namespace linserve {

// Holds a std::mutex whose use the compiler can check. It is taken by MutexLock only.
class ABSL_LOCKABLE Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

 private:
  friend class MutexLock;
  std::mutex mutex_;
};

// Holds a mutex for a scope, but for the time between Unlock() and Lock().
class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : lock_(mutex.mutex_) {}
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;
  ~MutexLock() ABSL_UNLOCK_FUNCTION() {}

  // Unlocks the mutex. REQUIRES: locked.
  void Unlock() ABSL_UNLOCK_FUNCTION() { lock_.unlock(); }
  // Locks the mutex again. REQUIRES: unlocked.
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { lock_.lock(); }

 private:
  friend class CondVar;
  std::unique_lock<std::mutex> lock_;
};

// Lets threads wait for a condition. Waits may end without a notification, so they stand in a loop;
// there is no form with a predicate, because the analysis does not know that a lambda runs with the
// lock held:
//   while (queue_.empty()) changed_.Wait(lock);
class CondVar {
 public:
  // Waits for a notification. REQUIRES: `lock` is locked; it is locked again when the call returns.
  void Wait(MutexLock& lock) { condition_.wait(lock.lock_); }

  // Waits until `deadline` at the latest; returns false if the deadline ended the wait. REQUIRES:
  // `lock` is locked; it is locked again when the call returns.
  bool WaitUntil(MutexLock& lock, std::chrono::steady_clock::time_point deadline) {
    return condition_.wait_until(lock.lock_, deadline) == std::cv_status::no_timeout;
  }

  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace linserve
