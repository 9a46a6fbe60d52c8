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

// Waking the threads costs a single row as much as a thousand rows take.
TEST(SpeedEstimate, LearnsLittleFromSmallBatches) {
  SpeedEstimate speed;
  speed.Observe(10000, 10ms);
  for (int i = 0; i < 100; ++i) speed.Observe(1, 1ms);
  EXPECT_LT(speed.TimeFor(10000), 35ms);
  // Small batches are all there is to learn from where none is larger.
  SpeedEstimate single;
  for (int i = 0; i < 100; ++i) single.Observe(1, 1ms);
  EXPECT_EQ(single.TimeFor(1), 1ms);
}

TEST(SpeedEstimate, FollowsAChangeAlsoAfterABatchLikeNoOther) {
  SpeedEstimate speed;
  speed.Observe(1'000'000, 1s);
  for (int i = 0; i < 1100; ++i) speed.Observe(1000, 2ms);
  EXPECT_NEAR(static_cast<double>(speed.TimeFor(1000).count()), 2e6, 1e4);
}

TEST(SpeedEstimate, CountsABatchWithoutTokensAsOneToken) {
  SpeedEstimate speed;
  speed.Observe(0, 1ms);
  EXPECT_EQ(speed.TimeFor(2), 2ms);
}

}  // namespace
}  // namespace linserve
