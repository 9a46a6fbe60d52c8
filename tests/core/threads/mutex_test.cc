#include "core/threads/mutex.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace linserve {
namespace {

using Steady = std::chrono::steady_clock;

class Counter {
 public:
  void Add() ABSL_LOCKS_EXCLUDED(mutex_) {
    const MutexLock lock(mutex_);
    ++value_;
    changed_.NotifyAll();
  }

  void WaitFor(int value) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    while (value_ < value) changed_.Wait(lock);
  }

  // Waits for a value; returns false once the deadline has passed.
  bool WaitUntil(int value, Steady::time_point deadline) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    while (value_ < value) {
      if (!changed_.WaitUntil(lock, deadline)) return value_ >= value;
    }
    return true;
  }

  // Adds one while the lock is given up in the middle of a scope.
  int AddInTheGap() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    lock.Unlock();
    Add();
    lock.Lock();
    return value_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int value_ ABSL_GUARDED_BY(mutex_) = 0;
};

TEST(Mutex, LetsOneThreadInAtATime) {
  Counter counter;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 1000; ++n) counter.Add();
    });
  }
  counter.WaitFor(4000);
  threads.clear();
  EXPECT_EQ(counter.AddInTheGap(), 4001);
}

TEST(CondVar, GivesUpAtItsDeadline) {
  Counter counter;
  EXPECT_FALSE(counter.WaitUntil(1, Steady::now()));
  EXPECT_FALSE(counter.WaitUntil(1, Steady::time_point::min()));
}

TEST(CondVar, IsWokenBeforeADeadlineThatNeverComes) {
  Counter counter;
  const std::jthread thread([&] { counter.Add(); });
  EXPECT_TRUE(counter.WaitUntil(1, Steady::time_point::max()));
}

}  // namespace
}  // namespace linserve
