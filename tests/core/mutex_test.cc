#include "core/mutex.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace linserve {
namespace {

using Clock = std::chrono::steady_clock;

class Counter {
 public:
  void Add() LINSERVE_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    ++value_;
    changed_.NotifyAll();
  }

  void WaitFor(int value) LINSERVE_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    while (value_ < value) changed_.Wait(lock);
  }

  // False once the deadline has passed.
  bool WaitUntil(int value, Clock::time_point deadline) LINSERVE_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    while (value_ < value) {
      if (!changed_.WaitUntil(lock, deadline)) return value_ >= value;
    }
    return true;
  }

  // Adds one while the lock is given up in the middle of a scope.
  int AddInTheGap() LINSERVE_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    lock.Unlock();
    Add();
    lock.Lock();
    return value_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int value_ LINSERVE_GUARDED_BY(mutex_) = 0;
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
  EXPECT_FALSE(counter.WaitUntil(1, Clock::now()));
  EXPECT_FALSE(counter.WaitUntil(1, Clock::time_point::min()));
}

TEST(CondVar, IsWokenBeforeADeadlineThatNeverComes) {
  Counter counter;
  const std::jthread thread([&] { counter.Add(); });
  EXPECT_TRUE(counter.WaitUntil(1, Clock::time_point::max()));
}

}  // namespace
}  // namespace linserve
