#include "attention/token_shift.h"

#include <gtest/gtest.h>

#include "attention/aten.h"
#include "attention/layouts.h"

namespace linserve {
namespace {

TEST(ShiftTokens, TakesAThirdOfTheFeaturesFromEachSideAndLeavesTheRest) {
  const at::Tensor rows = Matrix({{1, 2, 3, 4}, {10, 20, 30, 40}, {100, 200, 300, 400}});
  const at::Tensor expected = Matrix({{0, 2, 30, 4}, {1, 20, 300, 40}, {10, 200, 0, 400}});
  EXPECT_EQ(LargestDifference(ShiftTokens(rows, Packed({3}), false), expected), 0);
}

TEST(ShiftTokens, IfCausalTakesHalfOfTheFeaturesFromTheRowBefore) {
  const at::Tensor rows = Matrix({{1, 2, 3}, {10, 20, 30}});
  EXPECT_EQ(
      LargestDifference(ShiftTokens(rows, Packed({2}), true), Matrix({{0, 2, 3}, {1, 20, 30}})), 0);
}

TEST(ShiftTokens, TakesNothingFromNeighboursOrPadding) {
  const at::Tensor rows = Matrix({{1, 2, 3}, {7, 7, 7}, {4, 5, 6}, {7, 7, 7}});
  const at::Tensor shifted = ShiftTokens(rows, Padded({1, 1}, 2), false);
  EXPECT_EQ(LargestDifference(shifted[0], at::tensor({0, 2, 0})), 0);
  EXPECT_EQ(LargestDifference(shifted[2], at::tensor({0, 5, 0})), 0);
}

}  // namespace
}  // namespace linserve
