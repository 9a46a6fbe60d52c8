#include "core/threads/side_by_side.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cfenv>
#include <latch>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "core/system/processors.h"
#include "core/threads/mutex.h"

namespace linserve {
namespace {

using testing::Each;
using testing::ElementsAre;

// Counts how often each number is taken.
std::vector<int> Taken(int64_t count, int64_t threads) {
  std::vector<std::atomic<int>> taken(static_cast<size_t>(count));
  SideBySide(count, threads, [&](LoopTurns& turns) {
    for (int64_t i = 0; turns.Next(i);) ++taken[static_cast<size_t>(i)];
  });
  return {taken.begin(), taken.end()};
}

TEST(SideBySide, TakesEachNumberOnce) {
  for (const int64_t threads : {1, 2, 100}) {
    for (const int64_t count : {1, 2, 3, 1000}) EXPECT_THAT(Taken(count, threads), Each(1));
    EXPECT_THAT(Taken(0, threads), ElementsAre());
  }
}

TEST(SideBySide, IsDoneFromManyThreadsAtOnce) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      const ComputingScope computing;
      for (int round = 0; round < 500; ++round) EXPECT_THAT(Taken(7, 3), Each(1));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(SideBySide, NestsInItself) {
  std::atomic<int64_t> sum = 0;
  SideBySide(8, 4, [&](LoopTurns& turns) {
    for (int64_t i = 0; turns.Next(i);) {
      SideBySide(8, 4, [&](LoopTurns& inner) {
        for (int64_t j = 0; inner.Next(j);) sum += 8 * i + j;
      });
    }
  });
  EXPECT_EQ(sum, 63 * 64 / 2);
}

// Runs a loop of two numbers that wait for each other, so that two threads must have taken them.
template <typename Function>
void OnTwoThreads(const Function& function) {
  std::latch both(2);
  SideBySide(2, 2, [&](LoopTurns& turns) {
    for (int64_t i = 0; turns.Next(i);) {
      both.arrive_and_wait();
      function(i);
    }
  });
}

class SideBySideOnTwo : public testing::Test {
 protected:
  void SetUp() override {
    if (Processors() < 2) GTEST_SKIP() << "there is one processor";
  }
};

TEST_F(SideBySideOnTwo, HasHelpers) {
  Mutex mutex;
  std::set<std::thread::id> threads;
  EXPECT_FALSE(IsSideBySide());
  OnTwoThreads([&](int64_t) {
    EXPECT_TRUE(IsSideBySide());
    const MutexLock lock(mutex);
    threads.insert(std::this_thread::get_id());
  });
  EXPECT_FALSE(IsSideBySide());
  EXPECT_EQ(threads.size(), 2);
  EXPECT_TRUE(threads.contains(std::this_thread::get_id()));
}

TEST_F(SideBySideOnTwo, ThrowsWhatEitherThreadThrows) {
  const std::thread::id caller = std::this_thread::get_id();
  for (const bool by_caller : {false, true}) {
    EXPECT_THROW(OnTwoThreads([&](int64_t) {
                   if ((std::this_thread::get_id() == caller) == by_caller) {
                     throw std::runtime_error("no");
                   }
                 }),
                 std::runtime_error);
  }
  EXPECT_THAT(Taken(100, 2), Each(1));  // and goes on
}

TEST_F(SideBySideOnTwo, ComputesAsTheCallerDoes) {
  ASSERT_EQ(std::fesetround(FE_TOWARDZERO), 0);
  std::atomic<int> alike = 0;
  OnTwoThreads([&](int64_t) { alike += std::fegetround() == FE_TOWARDZERO ? 1 : 0; });
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(alike, 2);
  alike = 0;
  OnTwoThreads([&](int64_t) { alike += std::fegetround() == FE_TONEAREST ? 1 : 0; });
  EXPECT_EQ(alike, 2);
}

// Holds all processors but the caller's until it is destroyed.
class Others {
 public:
  Others() : begun_(Processors()), end_(1) {
    for (int64_t i = 0; i < Processors(); ++i) {
      threads_.emplace_back([this] {
        const ComputingScope computing;
        begun_.count_down();
        end_.wait();
      });
    }
    begun_.wait();
  }
  ~Others() {
    end_.count_down();
    for (std::thread& thread : threads_) thread.join();
  }
  Others(const Others&) = delete;
  Others& operator=(const Others&) = delete;

 private:
  std::latch begun_;
  std::latch end_;
  std::vector<std::thread> threads_;
};

TEST_F(SideBySideOnTwo, LeavesTheProcessorsToOthersThatCompute) {
  const ComputingScope computing;
  EXPECT_EQ(ShareOfProcessors(1000), Processors());
  EXPECT_EQ(ShareOfProcessors(2), 2);
  const std::thread::id caller = std::this_thread::get_id();
  std::latch both(2);
  std::latch crowded(1);
  std::latch left(1);
  std::atomic<int> by_helpers = 0;
  SideBySide(100, 2, [&](LoopTurns& turns) {
    int64_t i = 0;
    ASSERT_TRUE(turns.Next(i));
    both.arrive_and_wait();
    if (std::this_thread::get_id() == caller) {
      const Others others;
      EXPECT_EQ(ShareOfProcessors(1000), 1);
      crowded.count_down();
      left.wait();
      while (turns.Next(i)) continue;
    } else {
      crowded.wait();
      // Its own loops it computes to their ends.
      EXPECT_THAT(Taken(10, 1), Each(1));
      EXPECT_THAT(Taken(10, 2), Each(1));
      if (turns.Next(i)) ++by_helpers;
      left.count_down();
    }
  });
  EXPECT_EQ(by_helpers, 0);
  EXPECT_EQ(ShareOfProcessors(1000), Processors());
}

}  // namespace
}  // namespace linserve
