#include "client/load/report/percentiles.h"

#include <gmock/gmock.h>

#include <sstream>

namespace linserve {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

Histogram Of(int values) {
  Histogram histogram;
  for (int i = 1; i <= values; ++i) histogram.Record(static_cast<uint64_t>(i) * 1'000'000);
  return histogram;
}

TEST(Percentiles, AreFinerTheNearerTheyComeToTheLargestValue) {
  const Histogram histogram = Of(1000);
  const std::vector<Percentile> percentiles = Percentiles(histogram);
  ASSERT_GT(percentiles.size(), 40U);
  EXPECT_EQ(percentiles.front().fraction, 0);
  EXPECT_EQ(percentiles.back().fraction, 1);
  EXPECT_EQ(percentiles.back().value, 1'000'000'000U);
  EXPECT_EQ(percentiles.back().count, 1000U);
  for (size_t i = 1; i < percentiles.size(); ++i) {
    EXPECT_GT(percentiles[i].fraction, percentiles[i - 1].fraction);
    EXPECT_GE(percentiles[i].value, percentiles[i - 1].value);
    EXPECT_GE(percentiles[i].count, percentiles[i - 1].count);
    const double share = static_cast<double>(percentiles[i].count) / 1000;
    EXPECT_NEAR(share, percentiles[i].fraction, 0.01) << i;
  }
}

TEST(Percentiles, OfOneValueAreThatValueAndOfNoneAreNone) {
  EXPECT_THAT(Percentiles(Histogram()), SizeIs(0));
  const std::vector<Percentile> one = Percentiles(Of(1));
  ASSERT_FALSE(one.empty());
  EXPECT_EQ(one.back().value, 1'000'000U);
  EXPECT_EQ(one.back().fraction, 1);
}

TEST(Percentiles, AreATableThatPlottersOfHdrHistogramRead) {
  const std::string table = PercentileTable(Of(100));
  EXPECT_THAT(table, HasSubstr("       Value     Percentile TotalCount 1/(1-Percentile)\n\n"));
  EXPECT_THAT(table, HasSubstr("#[Mean    =       50.500, StdDeviation   =       28.8"));
  EXPECT_THAT(table, HasSubstr("#[Max     =      100.000, Total count    =          100]"));
  std::istringstream lines(table.substr(table.find("\n\n") + 2));
  double value = 0;
  double fraction = 0;
  double count = 0;
  lines >> value >> fraction >> count;
  EXPECT_NEAR(value, 1, 0.01);
  EXPECT_EQ(fraction, 0);
  EXPECT_EQ(count, 1);
}

}  // namespace
}  // namespace linserve
