#include "core/tensor/comparison.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace linserve {
namespace {

TEST(Comparison, OfEqualTensorsShowsNoDifference) {
  const Tensor a = Tensor::FromFloats({2, 2}, {1, 2, 3, 4});
  const auto comparison = Compare(a, a);
  ASSERT_TRUE(comparison.ok());
  EXPECT_EQ(comparison->largest, 0);
  EXPECT_NEAR(comparison->smallest_cosine, 1, 1e-12);
  EXPECT_EQ(comparison->rows, 2);
}

TEST(Comparison, FindsTheLargestDifferenceAndTheSmallestCosine) {
  const auto comparison =
      Compare(Tensor::FromFloats({2, 2}, {1, 0, 1, 0}), Tensor::FromFloats({2, 2}, {2, 0, 1, 1}));
  ASSERT_TRUE(comparison.ok());
  EXPECT_EQ(comparison->largest, 1);
  EXPECT_EQ(comparison->mean, 0.5);
  EXPECT_NEAR(comparison->smallest_cosine, std::sqrt(0.5), 1e-12);
  EXPECT_NEAR(comparison->mean_cosine, (1 + std::sqrt(0.5)) / 2, 1e-12);
}

TEST(Comparison, LeavesRowsOfPaddingOutOfTheCosines) {
  const auto comparison =
      Compare(Tensor::FromFloats({2, 2}, {1, 0, 0, 0}), Tensor::FromFloats({2, 2}, {1, 0, 0, 0}));
  EXPECT_EQ(comparison->rows, 1);
  EXPECT_EQ(comparison->mean_cosine, 1);
}

TEST(Comparison, AnswersANumberThatIsNoneWithInfinity) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto comparison =
      Compare(Tensor::FromFloats({1, 2}, {1, nan}), Tensor::FromFloats({1, 2}, {1, 2}));
  EXPECT_TRUE(std::isinf(comparison->largest));
  EXPECT_EQ(comparison->smallest_cosine, -1);
}

TEST(Comparison, ComparesOtherFloatTypesAndRefusesWhatDiffersInShape) {
  const Tensor a = Tensor::FromFloats({2}, {1, 2});
  EXPECT_EQ(Compare(a, *Convert(a, DType::kBF16))->largest, 0);
  EXPECT_TRUE(absl::IsInvalidArgument(Compare(a, Tensor::FromFloats({1, 2}, {1, 2})).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Compare(a, Tensor::FromInts({2}, {1, 2})).status()));
}

TEST(Comparison, AddsUpAsOneComparisonOfAll) {
  const Tensor a = Tensor::FromFloats({2, 2}, {1, 0, 1, 0});
  const Tensor b = Tensor::FromFloats({2, 2}, {2, 0, 1, 1});
  Comparison sum = *Compare(a.Rows(0, 1), b.Rows(0, 1));
  sum.Add(*Compare(a.Rows(1, 2), b.Rows(1, 2)));
  const Comparison whole = *Compare(a, b);
  EXPECT_EQ(sum.largest, whole.largest);
  EXPECT_DOUBLE_EQ(sum.mean, whole.mean);
  EXPECT_DOUBLE_EQ(sum.mean_cosine, whole.mean_cosine);
  EXPECT_EQ(sum.rows, whole.rows);
}

}  // namespace
}  // namespace linserve
