#include "engine/busy_time.h"

#include <gtest/gtest.h>

namespace linserve {
namespace {

using namespace std::chrono_literals;

TEST(BusyTime, CountsEveryWorkerWhileItComputes) {
  const TimePoint start{1h};
  BusyTime busy(2);
  EXPECT_EQ(busy.Total(start), 0s);
  busy.Begin(start);
  EXPECT_EQ(busy.Total(start + 2s), 2s);
  busy.Begin(start + 2s);
  EXPECT_EQ(busy.Total(start + 3s), 4s);
  busy.End(start + 3s);
  busy.End(start + 4s);
  EXPECT_EQ(busy.Total(start + 9s), 5s);
}

TEST(BusyTime, CountsThoseWhoShareTheirProcessorsOnce) {
  const TimePoint start{1h};
  BusyTime busy(1);
  busy.Begin(start);
  busy.Begin(start + 2s);
  EXPECT_EQ(busy.Total(start + 3s), 3s);
  busy.End(start + 4s);
  EXPECT_EQ(busy.Total(start + 5s), 5s);
  busy.End(start + 6s);
  EXPECT_EQ(busy.Total(start + 9s), 6s);
}

}  // namespace
}  // namespace linserve
