#include "core/periodic.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

namespace linserve {
namespace {

TEST(Periodic, RunsAtOnceAndAgainAfterThePauseThatTheTaskAsksFor) {
  std::atomic<int> runs{0};
  const Periodic periodic([&runs] {
    ++runs;
    return std::chrono::milliseconds(1);
  });
  while (runs < 3) std::this_thread::yield();
}

TEST(Periodic, EndsWithoutWaitingForAPause) {
  std::atomic<int> runs{0};
  std::optional<Periodic> periodic([&runs] {
    ++runs;
    return std::chrono::hours(1);
  });
  while (runs < 1) std::this_thread::yield();
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
  while (!begun) std::this_thread::yield();
  periodic.reset();
  EXPECT_TRUE(ended);
}

}  // namespace
}  // namespace linserve
