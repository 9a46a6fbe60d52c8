#include "attention/local/token_shift.h"

#include <gtest/gtest.h>

#include "attention/layouts.h"
#include "attention/rows/aten.h"

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

TEST(ContinueShift, TakesTheRowBeforeTheFirstOneFromTheChunkBefore) {
  // There are two sequences of three rows each, and the next chunk of both: of one row and of two.
  const at::Tensor rows = at::randn({6, 5});
  const at::Tensor expected = ShiftTokens(rows, Packed({3, 3}), /*causal=*/true);
  const at::Tensor last = at::zeros({2, 2});
  const auto of = [](const at::Tensor& x, at::IntArrayRef places) {
    return x.index_select(0, at::tensor(places, at::kLong));
  };
  const PlacedLayout first = Packed({2, 1});
  EXPECT_EQ(
      LargestDifference(ContinueShift(of(rows, {0, 1, 3}), first, last), of(expected, {0, 1, 3})),
      0);
  const PlacedLayout next = Packed({1, 2});
  EXPECT_EQ(
      LargestDifference(ContinueShift(of(rows, {2, 4, 5}), next, last), of(expected, {2, 4, 5})),
      0);
}

}  // namespace
}  // namespace linserve
