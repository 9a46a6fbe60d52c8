#include "attention/linformer/length_projection.h"

#include <gtest/gtest.h>

#include "attention/layouts.h"

namespace linserve {
namespace {

at::Tensor Sums(int64_t count, int64_t heads, int64_t slots, int64_t width) {
  return at::zeros({count, heads, slots, width});
}

TEST(AddProjected, SumsTheRowsByTheColumnsOfTheirPositions) {
  // There are one matrix, two slots, three positions, and two heads of one feature.
  const at::Tensor matrices = Matrix({{1, 2, 3}, {10, 20, 30}}).unsqueeze(0);
  at::Tensor sums = Sums(1, 2, 2, 1);
  AddProjected(Matrix({{1, 5}, {2, 7}}).unsqueeze(0), matrices, /*first=*/1, sums);
  // Head 0: 2·1 + 3·2 and 20·1 + 30·2; head 1: 2·5 + 3·7 and 20·5 + 30·7.
  const at::Tensor expected = Matrix({{8, 80}, {31, 310}}).view({1, 2, 2, 1});
  EXPECT_EQ(LargestDifference(sums, expected), 0);
}

TEST(AddProjected, GivesEachHeadItsOwnMatrix) {
  const at::Tensor matrices = Matrix({{1, 2}, {3, 4}}).view({2, 1, 2});
  at::Tensor sums = Sums(2, 2, 1, 1);
  AddProjected(at::tensor({1.F, 1.F, 10.F, 10.F, 2.F, 2.F, 20.F, 20.F}).view({2, 2, 2}), matrices,
               0, sums);
  EXPECT_EQ(LargestDifference(sums.flatten(), at::tensor({21.F, 43.F, 42.F, 86.F})), 0);
}

TEST(AddProjected, TakesALongSequenceInParts) {
  for (const int64_t matrices_count : {1, 3}) {
    const at::Tensor matrices = at::randn({matrices_count, 4, 9});
    const at::Tensor rows = at::randn({2, 9, 6});
    at::Tensor whole = Sums(2, 3, 4, 2);
    AddProjected(rows, matrices, 0, whole);
    at::Tensor parts = Sums(2, 3, 4, 2);
    AddProjected(rows.narrow(1, 0, 1), matrices, 0, parts);
    AddProjected(rows.narrow(1, 1, 5), matrices, 1, parts);
    AddProjected(rows.narrow(1, 6, 3), matrices, 6, parts);
    EXPECT_LT(LargestDifference(whole, parts), 1e-5);
  }
}

TEST(AddProjected, TakesOneRowAndMoreSlotsThanRows) {
  const at::Tensor matrices = at::randn({1, 50, 8});
  const at::Tensor row = at::randn({1, 1, 3});
  at::Tensor sums = Sums(1, 1, 50, 3);
  AddProjected(row, matrices, 0, sums);
  EXPECT_LT(LargestDifference(sums.view({50, 3}),
                              at::outer(matrices.select(0, 0).select(1, 0), row.flatten())),
            1e-6);
}

TEST(AddProjected, StaysFiniteForLargeRowsOfBfloat16) {
  const at::Tensor matrices = at::ones({1, 2, 300}).to(at::kBFloat16);
  at::Tensor sums = Sums(1, 1, 2, 1);
  AddProjected(at::full({1, 300, 1}, 1e4).to(at::kBFloat16), matrices, 0, sums);
  EXPECT_NEAR(sums.max().item<float>() / 3e6, 1, 0.01);
}

TEST(AddConvolved, SeesEachWindowOnce) {
  // Stride 2, one feature: slot s is 10·K[2s] + K[2s+1].
  const at::Tensor kernels = at::tensor({10.F, 1.F}).view({1, 2, 1});
  at::Tensor sums = Sums(1, 1, 2, 1);
  AddConvolved(at::tensor({1.F, 2.F, 3.F, 4.F, 5.F}).view({1, 5, 1}), kernels, 0, sums);
  EXPECT_EQ(LargestDifference(sums.flatten(), at::tensor({12.F, 34.F})),
            0);  // the fifth is left out
}

TEST(AddConvolved, MixesTheFeaturesOfItsHeadAndOfNoOther) {
  // Stride 1, two heads of two features; head 1 swaps them.
  const at::Tensor kernels = at::tensor({1.F, 0.F, 0.F, 1.F, 0.F, 1.F, 1.F, 0.F}).view({2, 2, 2});
  at::Tensor sums = Sums(1, 2, 1, 2);
  AddConvolved(at::tensor({1.F, 2.F, 3.F, 4.F}).view({1, 1, 4}), kernels, 0, sums);
  EXPECT_EQ(LargestDifference(sums.flatten(), at::tensor({1.F, 2.F, 4.F, 3.F})), 0);
}

TEST(AddConvolved, TakesAnIncompleteWindowForOnePaddedWithZeros) {
  const at::Tensor kernels = at::tensor({100.F, 10.F, 1.F}).view({1, 3, 1});
  at::Tensor sums = Sums(1, 1, 4, 1);
  AddConvolved(at::tensor({1.F, 2.F, 3.F, 4.F}).view({1, 4, 1}), kernels, 0, sums);
  EXPECT_EQ(LargestDifference(sums.flatten(), at::tensor({123.F, 400.F, 0.F, 0.F})), 0);
}

TEST(AddConvolved, IsTheConvolutionOfLibTorch) {
  const int64_t heads = 3;
  const int64_t width = 4;
  const int64_t stride = 5;
  const at::Tensor weights = at::randn({heads, width, width, stride});
  const at::Tensor kernels = weights.permute({0, 3, 2, 1}).flatten(1, 2);
  const at::Tensor rows = at::randn({2, 23, heads * width});
  at::Tensor sums = Sums(2, heads, 4, width);
  AddConvolved(rows.narrow(1, 0, 10), kernels, 0, sums);
  AddConvolved(rows.narrow(1, 10, 13), kernels, 10, sums);
  for (int64_t head = 0; head < heads; ++head) {
    const at::Tensor own = rows.narrow(2, head * width, width).transpose(1, 2);
    const at::Tensor expected = at::conv1d(own, weights.select(0, head), {}, stride);
    EXPECT_LT(LargestDifference(sums.select(1, head), expected.transpose(1, 2)), 1e-5);
  }
}

TEST(AddConvolved, LeavesOutRowsPastTheLastSlot) {
  const at::Tensor kernels = at::ones({1, 2, 1});
  at::Tensor sums = Sums(1, 1, 2, 1);
  AddConvolved(at::ones({1, 1, 1}), kernels, /*first=*/4, sums);
  EXPECT_EQ(LargestDifference(sums, at::zeros_like(sums)), 0);
}

}  // namespace
}  // namespace linserve
