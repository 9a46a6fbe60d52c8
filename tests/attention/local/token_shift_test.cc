#include "attention/local/token_shift.h"

#include <gtest/gtest.h>

#include "attention/layouts.h"
#include "attention/rows/aten.h"

namespace linserve {
namespace {

TEST(ShiftTokens, TakesAThirdOfTheFeaturesFromEachSideAndLeavesTheRest) {
  const at::Tensor rows = Matrix({{1, 2, 3, 4}, {10, 20, 30, 40}, {100, 200, 300, 400}});
  const at::Tensor expected = Matrix({{0, 2, 30, 4}, {1, 20, 300, 40}, {10, 200, 0, 400}});
  EXPECT_EQ(LargestDifference(ShiftTokens(rows, Packed({3}), {1, 0, -1}), expected), 0);
}

TEST(ShiftTokens, IfCausalTakesHalfOfTheFeaturesFromTheRowBefore) {
  const at::Tensor rows = Matrix({{1, 2, 3}, {10, 20, 30}});
  EXPECT_EQ(
      LargestDifference(ShiftTokens(rows, Packed({2}), {1, 0}), Matrix({{0, 2, 3}, {1, 20, 30}})),
      0);
}

TEST(ShiftTokens, TakesNothingFromNeighboursOrPadding) {
  const at::Tensor rows = Matrix({{1, 2, 3}, {7, 7, 7}, {4, 5, 6}, {7, 7, 7}});
  const at::Tensor shifted = ShiftTokens(rows, Padded({1, 1}, 2), {1, 0, -1});
  EXPECT_EQ(LargestDifference(shifted[0], at::tensor({0, 2, 0})), 0);
  EXPECT_EQ(LargestDifference(shifted[2], at::tensor({0, 5, 0})), 0);
}

TEST(ShiftTokens, TakesGroupsInAnyOrderAndNothingFromMaskedRows) {
  const at::Tensor rows = Matrix({{1, 2, 3}, {10, 20, 30}, {100, 200, 300}});
  const at::Tensor mask = at::tensor({1, 0, 1}).to(at::kBool);
  EXPECT_EQ(LargestDifference(ShiftTokens(rows, Packed({3}), {-1, 0, 1}, mask),
                              Matrix({{0, 2, 0}, {100, 20, 3}, {0, 200, 0}})),
            0);
}

TEST(ContinueShift, TakesTheRowBeforeTheFirstOneFromTheChunkBefore) {
  // There are two sequences of three rows each, and the next chunk of both: of one row and of two.
  const at::Tensor rows = at::randn({6, 5});
  const auto of = [](const at::Tensor& x, at::IntArrayRef places) {
    return x.index_select(0, at::tensor(places, at::kLong));
  };
  for (const std::vector<int64_t>& shifts : {std::vector<int64_t>{1, 0}, {0, 1}}) {
    const at::Tensor expected = ShiftTokens(rows, Packed({3, 3}), shifts);
    const at::Tensor last = at::zeros({2, 2});
    const at::Tensor first = ContinueShift(of(rows, {0, 1, 3}), Packed({2, 1}), shifts, last);
    EXPECT_EQ(LargestDifference(first, of(expected, {0, 1, 3})), 0);
    const at::Tensor next = ContinueShift(of(rows, {2, 4, 5}), Packed({1, 2}), shifts, last);
    EXPECT_EQ(LargestDifference(next, of(expected, {2, 4, 5})), 0);
  }
}

}  // namespace
}  // namespace linserve
