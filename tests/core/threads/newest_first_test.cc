#include "core/threads/newest_first.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace linserve {
namespace {

using testing::ElementsAre;

TEST(NewestFirst, WakesTheThreadThatHasWaitedForTheShortestTime) {
  Mutex mutex;
  CondVar changed;
  NewestFirst condition;
  int waiting = 0;
  std::vector<int> woken;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      MutexLock lock(mutex);
      ++waiting;
      changed.NotifyAll();
      condition.Wait([&](CondVar& own) { own.Wait(lock); });
      woken.push_back(i);
      changed.NotifyAll();
    });
    MutexLock lock(mutex);
    while (waiting <= i) changed.Wait(lock);
  }
  for (size_t count = 1; count <= 3; ++count) {
    MutexLock lock(mutex);
    condition.NotifyOne();
    while (woken.size() < count) changed.Wait(lock);
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(woken, ElementsAre(2, 1, 0));
}

TEST(NewestFirst, WakesAllWhoWait) {
  Mutex mutex;
  NewestFirst condition;
  bool done = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      MutexLock lock(mutex);
      while (!done) condition.Wait([&](CondVar& own) { own.Wait(lock); });
    });
  }
  {
    const MutexLock lock(mutex);
    done = true;
    condition.NotifyAll();
    condition.NotifyOne();  // of nobody
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace linserve
