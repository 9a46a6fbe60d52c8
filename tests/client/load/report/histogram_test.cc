#include "client/load/report/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace linserve {
namespace {

uint64_t ExactQuantile(const std::vector<uint64_t>& sorted, double fraction) {
  const auto rank = static_cast<size_t>(std::ceil(fraction * static_cast<double>(sorted.size())));
  return sorted[std::max<size_t>(rank, 1) - 1];
}

void ExpectQuantilesOf(std::vector<uint64_t> values) {
  Histogram histogram;
  for (uint64_t value : values) histogram.Record(value);
  std::sort(values.begin(), values.end());
  for (double fraction : {0.0, 0.01, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0}) {
    const auto exact = static_cast<double>(ExactQuantile(values, fraction));
    EXPECT_NEAR(static_cast<double>(histogram.Quantile(fraction)), exact,
                exact * Histogram::kRelativeError)
        << fraction;
  }
  EXPECT_EQ(histogram.count(), values.size());
  EXPECT_EQ(histogram.max(), values.back());
}

TEST(Histogram, QuantilesOfLogNormalLatenciesAreCloseToTheExactOnes) {
  std::mt19937_64 random(1);
  std::lognormal_distribution<double> latency(std::log(5e6), 1.0);
  std::vector<uint64_t> values(100000);
  for (uint64_t& value : values) value = static_cast<uint64_t>(latency(random));
  ExpectQuantilesOf(values);
}

TEST(Histogram, QuantilesOverAllMagnitudesAreCloseToTheExactOnes) {
  std::mt19937_64 random(2);
  std::uniform_real_distribution<double> exponent(0, 63);
  std::vector<uint64_t> values(100000);
  for (uint64_t& value : values) value = static_cast<uint64_t>(std::exp2(exponent(random)));
  ExpectQuantilesOf(values);
}

TEST(Histogram, SmallValuesAreExact) {
  for (uint64_t value : {0, 1, 2, 100, 255}) {
    Histogram histogram;
    histogram.Record(value);
    EXPECT_EQ(histogram.Quantile(0.5), value);
  }
}

TEST(Histogram, EveryEdgeOfItsBucketsIsWithinTheError) {
  for (int bit = 8; bit < 64; ++bit) {
    for (uint64_t value :
         {(uint64_t{1} << bit) - 1, uint64_t{1} << bit, (uint64_t{1} << bit) + 1}) {
      Histogram histogram;
      histogram.Record(value);
      histogram.Record(std::numeric_limits<uint64_t>::max());
      EXPECT_NEAR(static_cast<double>(histogram.Quantile(0.5)), static_cast<double>(value),
                  static_cast<double>(value) * Histogram::kRelativeError);
    }
  }
}

TEST(Histogram, WithoutValuesIsZero) {
  const Histogram histogram;
  EXPECT_EQ(histogram.Quantile(0.99), 0U);
  EXPECT_EQ(histogram.mean(), 0);
  EXPECT_EQ(histogram.max(), 0U);
}

TEST(Histogram, TheMeanIsExact) {
  Histogram histogram;
  histogram.Record(1'000'000);
  histogram.Record(2'000'001);
  EXPECT_DOUBLE_EQ(histogram.mean(), 1'500'000.5);
}

TEST(Histogram, MergingIsRecordingBoth) {
  Histogram one;
  Histogram other;
  Histogram both;
  for (uint64_t value = 1; value < 5000; value += 7) {
    (value % 2 == 0 ? one : other).Record(value);
    both.Record(value);
  }
  one.Merge(other);
  EXPECT_EQ(one.count(), both.count());
  EXPECT_EQ(one.max(), both.max());
  EXPECT_EQ(one.Quantile(0.9), both.Quantile(0.9));
}

}  // namespace
}  // namespace linserve
