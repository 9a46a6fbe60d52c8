#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

// What clang's -Wthread-safety reads; nothing under other compilers.
#if defined(__clang__)
#define LINSERVE_THREAD_ATTRIBUTE(...) __attribute__((__VA_ARGS__))
#else
#define LINSERVE_THREAD_ATTRIBUTE(...)
#endif

#define LINSERVE_CAPABILITY(name) LINSERVE_THREAD_ATTRIBUTE(capability(name))
#define LINSERVE_SCOPED_CAPABILITY LINSERVE_THREAD_ATTRIBUTE(scoped_lockable)
// On a field: to be touched only with the mutex held (the second: what the pointer points to).
#define LINSERVE_GUARDED_BY(mutex) LINSERVE_THREAD_ATTRIBUTE(guarded_by(mutex))
#define LINSERVE_PT_GUARDED_BY(mutex) LINSERVE_THREAD_ATTRIBUTE(pt_guarded_by(mutex))
// On a function: to be called only with, or only without, the mutex held.
#define LINSERVE_REQUIRES(...) LINSERVE_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define LINSERVE_EXCLUDES(...) LINSERVE_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
// On a function: takes, or gives up, the mutex.
#define LINSERVE_ACQUIRE(...) LINSERVE_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define LINSERVE_RELEASE(...) LINSERVE_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))

namespace linserve {

// A std::mutex that the compiler can check the use of. Taken by MutexLock only.
class LINSERVE_CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

 private:
  friend class MutexLock;
  std::mutex mutex_;
};

// Holds a mutex for a scope, but for the time between Unlock() and Lock().
class LINSERVE_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) LINSERVE_ACQUIRE(mutex) : lock_(mutex.mutex_) {}
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;
  ~MutexLock() LINSERVE_RELEASE() {}

  // REQUIRES: locked.
  void Unlock() LINSERVE_RELEASE() { lock_.unlock(); }
  // REQUIRES: unlocked.
  void Lock() LINSERVE_ACQUIRE() { lock_.lock(); }

 private:
  friend class CondVar;
  std::unique_lock<std::mutex> lock_;
};

// A condition variable. Waits may end without a notification, so they stand in a loop; there is no
// form with a predicate, because the analysis does not know that a lambda runs with the lock held:
//   while (queue_.empty()) changed_.Wait(lock);
class CondVar {
 public:
  // REQUIRES: `lock` is locked; it is again when the call returns.
  void Wait(MutexLock& lock) { condition_.wait(lock.lock_); }

  // The same until `deadline` at the latest; false if the deadline ended the wait.
  bool WaitUntil(MutexLock& lock, std::chrono::steady_clock::time_point deadline) {
    return condition_.wait_until(lock.lock_, deadline) == std::cv_status::no_timeout;
  }

  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace linserve
