#include "core/threads/periodic.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <new>
#include <optional>
#include <thread>

#include "support/wait_until.h"

namespace linserve {
namespace {

TEST(Periodic, RunsAtOnceAndAgainAfterThePauseThatTheTaskAsksFor) {
  std::atomic<int> runs{0};
  const Periodic periodic([&runs] {
    ++runs;
    return std::chrono::milliseconds(1);
  });
  EXPECT_TRUE(WaitUntil([&] { return runs >= 3; }));
}

TEST(Periodic, EndsWithoutWaitingForAPause) {
  std::atomic<int> runs{0};
  std::optional<Periodic> periodic([&runs] {
    ++runs;
    return std::chrono::hours(1);
  });
  EXPECT_TRUE(WaitUntil([&] { return runs >= 1; }));
  periodic.reset();
  EXPECT_EQ(runs, 1);
}

TEST(Periodic, EndsOnlyAfterTheRunThatHasBegun) {
  std::atomic<bool> begun{false};
  std::atomic<bool> ended{false};
  std::optional<Periodic> periodic([&] {
    begun = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // long enough to be destroyed in
    ended = true;
    return std::chrono::milliseconds(0);
  });
  EXPECT_TRUE(WaitUntil([&] { return begun.load(); }));
  periodic.reset();
  EXPECT_TRUE(ended);
}

TEST(Periodic, RunsAgainAfterATaskThatThrows) {
  std::atomic<int> runs{0};
  const Periodic periodic([&runs]() -> std::chrono::nanoseconds {
    if (++runs == 1) throw std::bad_alloc();
    return std::chrono::hours(1);
  });
  EXPECT_TRUE(WaitUntil([&] { return runs >= 2; }));
}

}  // namespace
}  // namespace linserve
