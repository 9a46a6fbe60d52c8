#include "attention/positions/positions.h"

#include <gtest/gtest.h>

#include <cmath>

#include "attention/layouts.h"
#include "attention/rows/aten.h"

namespace linserve {
namespace {

TEST(Sinusoid, HasAllSinesBeforeAllCosines) {
  const at::Tensor table = Sinusoid(3, 4, 100);
  ASSERT_EQ(table.sizes(), (std::vector<int64_t>{3, 4}));
  const at::Tensor expected =
      at::tensor({std::sin(2.0), std::sin(0.2), std::cos(2.0), std::cos(0.2)});
  EXPECT_LT(LargestDifference(table[2], expected), 1e-6);
}

TEST(AddPositions, CountsFromTheStartOfEachSequence) {
  const at::Tensor table = Matrix({{1, 2}, {30, 40}, {500, 600}});
  at::Tensor packed = at::zeros({4, 2});
  AddPositions(packed, Packed({3, 1}), table);
  EXPECT_EQ(LargestDifference(packed, Matrix({{1, 2}, {30, 40}, {500, 600}, {1, 2}})), 0);
  at::Tensor padded = at::zeros({4, 2});
  AddPositions(padded, Padded({1, 2}, 2), table);
  EXPECT_EQ(LargestDifference(padded, Matrix({{1, 2}, {0, 0}, {1, 2}, {30, 40}})), 0);
}

TEST(AddAxialPositions, AddsARowOfEachTable) {
  at::Tensor rows = at::zeros({8, 1});
  AddAxialPositions(rows, Packed({5, 1, 2}), Matrix({{100}, {200}, {300}}), Matrix({{1}, {2}}));
  EXPECT_EQ(
      LargestDifference(rows, Matrix({{101}, {102}, {201}, {202}, {301}, {101}, {101}, {102}})), 0);
}

TEST(Rotate, TurnsPairsOfNeighboursInEachHead) {
  // Two heads of one pair; position 1 turns by a quarter.
  const at::Tensor table = Matrix({{0, 1}, {1, 0}});
  at::Tensor rows = Matrix({{1, 2, 3, 4}, {1, 2, 3, 4}, {5, 6, 7, 8}});
  Rotate(rows, Packed({2, 1}), 2, table);
  EXPECT_EQ(LargestDifference(rows, Matrix({{1, 2, 3, 4}, {-2, 1, -4, 3}, {5, 6, 7, 8}})), 0);
}

TEST(Rotate, KeepsTheLengthOfEveryPair) {
  at::Tensor rows = at::randn({30, 12});
  const at::Tensor before = rows.clone();
  Rotate(rows, Padded({10, 3}, 15), 3, Sinusoid(10, 4, 10000));
  EXPECT_GT(LargestDifference(rows, before), 0.1);
  const auto norms = [](const at::Tensor& x) { return x.view({30, 6, 2}).norm(2, {-1}); };
  EXPECT_LT(LargestDifference(norms(rows), norms(before)), 1e-5);
  EXPECT_EQ(LargestDifference(rows.narrow(0, 18, 12), before.narrow(0, 18, 12)), 0);
}

}  // namespace
}  // namespace linserve
