#include "engine/speed_estimate.h"

#include <gtest/gtest.h>

namespace linserve {
namespace {

using namespace std::chrono_literals;

TEST(SpeedEstimate, KnowsNothingBeforeTheFirstBatch) {
  EXPECT_EQ(SpeedEstimate().TimeFor(1000), 0ns);
}

TEST(SpeedEstimate, BelievesTheFirstBatch) {
  SpeedEstimate speed;
  speed.Observe(100, 1ms);
  EXPECT_EQ(speed.TimeFor(100), 1ms);
  EXPECT_EQ(speed.TimeFor(250), 2500us);
}

TEST(SpeedEstimate, FollowsAChangeStepByStep) {
  SpeedEstimate speed;
  speed.Observe(100, 1ms);
  speed.Observe(100, 2ms);
  const auto after_one = speed.TimeFor(100);
  EXPECT_GT(after_one, 1ms);
  EXPECT_LT(after_one, 1500us);
  for (int i = 0; i < 40; ++i) speed.Observe(100, 2ms);
  EXPECT_NEAR(static_cast<double>(speed.TimeFor(100).count()), 2e6, 1e3);
}

TEST(SpeedEstimate, CountsABatchWithoutTokensAsOneToken) {
  SpeedEstimate speed;
  speed.Observe(0, 1ms);
  EXPECT_EQ(speed.TimeFor(2), 2ms);
}

}  // namespace
}  // namespace linserve
