#include "core/workload/lengths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "support/test_files.h"

namespace linserve {
namespace {

using ::testing::HasSubstr;

std::vector<int64_t> Draws(const std::string& text, size_t count) {
  const auto lengths = LengthDistribution::Parse(text);
  EXPECT_TRUE(lengths.ok()) << lengths.status();
  std::mt19937_64 random(3);
  std::vector<int64_t> draws(count);
  for (int64_t& draw : draws) draw = lengths->Draw(random);
  std::sort(draws.begin(), draws.end());
  return draws;
}

double Mean(const std::vector<int64_t>& values) {
  double sum = 0;
  for (int64_t value : values) sum += static_cast<double>(value);
  return sum / static_cast<double>(values.size());
}

TEST(Lengths, FixedIsAlwaysTheSame) {
  const auto draws = Draws("fixed:128", 10);
  EXPECT_EQ(draws.front(), 128);
  EXPECT_EQ(draws.back(), 128);
}

TEST(Lengths, UniformReachesBothEnds) {
  const auto draws = Draws("uniform:8,12", 10000);
  EXPECT_EQ(draws.front(), 8);
  EXPECT_EQ(draws.back(), 12);
  EXPECT_NEAR(Mean(draws), 10, 0.1);
}

TEST(Lengths, LogNormalHasItsMedianAndItsSpreadAndStaysWithinItsEnds) {
  const auto draws = Draws("lognormal:96,0.8,8,512", 100000);
  EXPECT_NEAR(static_cast<double>(draws[50000]), 96, 2);
  // This draw is one sigma above the median.
  EXPECT_NEAR(static_cast<double>(draws[84134]), 96 * std::exp(0.8), 4);
  EXPECT_EQ(draws.front(), 8);
  EXPECT_EQ(draws.back(), 512);
}

TEST(Lengths, FromAFileAreItsLines) {
  const TempDir directory;
  const std::string path = directory.File("lengths.txt");
  std::ofstream(path) << "10\n20\r\n\n20\n20\n";
  std::map<int64_t, int> counts;
  for (int64_t draw : Draws("file:" + path, 10000)) ++counts[draw];
  EXPECT_EQ(counts.size(), 2U);
  EXPECT_NEAR(counts[10], 2500, 200);
  EXPECT_EQ(LengthDistribution::Parse("file:" + path)->longest(), 20);
}

TEST(Lengths, ThatCannotBeAreRefused) {
  for (const char* text :
       {"128", "fixed:", "fixed:0", "fixed:12x", "uniform:5", "uniform:9,8", "uniform:0,8",
        "lognormal:96,0.8", "lognormal:0,1,8,9", "lognormal:96,-1,8,9", "lognormal:96,1,9,8",
        "lognormal:inf,1,8,9", "normal:1,2"}) {
    const auto lengths = LengthDistribution::Parse(text);
    EXPECT_EQ(lengths.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(lengths.status().ToString(), HasSubstr(text));
    EXPECT_THAT(lengths.status().ToString(), HasSubstr("expected"));
  }
}

TEST(Lengths, OfABadFileNameTheFileAndTheLine) {
  EXPECT_EQ(LengthDistribution::Parse("file:/no/such/file").status(),
            absl::NotFoundError("cannot open the lengths in /no/such/file"));
  const TempDir directory;
  const std::string path = directory.File("bad_lengths.txt");
  std::ofstream(path) << "10\nten\n";
  EXPECT_EQ(LengthDistribution::Parse("file:" + path).status(),
            absl::InvalidArgumentError(path + ", line 2: 'ten', expected a length of 1 or more"));
  std::ofstream(path, std::ios::trunc).close();
  EXPECT_EQ(LengthDistribution::Parse("file:" + path).status(),
            absl::InvalidArgumentError(path + " holds no lengths"));
}

}  // namespace
}  // namespace linserve
