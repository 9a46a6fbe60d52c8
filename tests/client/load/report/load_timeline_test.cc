#include "client/load/report/load_timeline.h"

#include <gtest/gtest.h>

namespace linserve {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(LoadTimeline, CountsByTheSecond) {
  LoadTimeline timeline;
  ++timeline.At(milliseconds(0)).answered;
  ++timeline.At(milliseconds(999)).answered;
  ++timeline.At(milliseconds(2000)).failed;
  EXPECT_EQ(timeline.interval(), seconds(1));
  ASSERT_EQ(timeline.intervals().size(), 3U);
  EXPECT_EQ(timeline.intervals()[0].answered, 2U);
  EXPECT_EQ(timeline.intervals()[1].answered, 0U);
  EXPECT_EQ(timeline.intervals()[2].failed, 1U);
}

TEST(LoadTimeline, TakesLongerIntervalsTheLongerItIsAndLosesNothing) {
  LoadTimeline timeline;
  constexpr int kSeconds = 1000;
  for (int i = 0; i < kSeconds; ++i) {
    LoadTimeline::Interval& interval = timeline.At(seconds(i));
    ++interval.answered;
    ++interval.sequences;
    interval.batch_sequences += 2;
    interval.latency.Record(static_cast<uint64_t>(i));
  }
  EXPECT_EQ(timeline.interval(), seconds(8));
  ASSERT_EQ(timeline.intervals().size(), 125U);
  for (size_t i = 0; i < 125; ++i) {
    const LoadTimeline::Interval& interval = timeline.intervals()[i];
    EXPECT_EQ(interval.answered, 8U) << i;
    EXPECT_EQ(interval.sequences, 8U) << i;
    EXPECT_EQ(interval.batch_sequences, 16) << i;
    EXPECT_EQ(interval.latency.max(), 8 * i + 7);
  }
}

TEST(LoadTimeline, LeapsFarAhead) {
  LoadTimeline timeline;
  timeline.At(seconds(3)).answered = 1;
  timeline.At(seconds(1'000'000)).answered = 1;
  EXPECT_LE(timeline.intervals().size(), LoadTimeline::kMostIntervals);
  EXPECT_EQ(timeline.intervals().front().answered, 1U);
  EXPECT_EQ(timeline.intervals().back().answered, 1U);
}

}  // namespace
}  // namespace linserve
