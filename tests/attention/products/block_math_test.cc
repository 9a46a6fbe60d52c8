#include "attention/products/block_math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "attention/layouts.h"
#include "attention/products/block_product.h"
#include "attention/rows/aten.h"

namespace linserve {
namespace {

// The parameter is a width: those around the vectors' own are easily got wrong.
class BlockMath : public ::testing::TestWithParam<int64_t> {
 protected:
  int64_t width() const { return GetParam(); }
  // Makes rows that do not lie side by side.
  at::Tensor Rows(int64_t count, double scale = 1) const {
    return (at::randn({count, width() + 3}) * scale).narrow(1, 0, width());
  }
  at::Tensor Vector() const { return at::randn({width()}); }
};

TEST_P(BlockMath, AddsABias) {
  const at::Tensor rows = Rows(5);
  const at::Tensor bias = Vector();
  const at::Tensor expected = rows + bias;
  AddBias(BlockOf(rows), 5, width(), bias.const_data_ptr<float>());
  EXPECT_TRUE(at::equal(rows, expected));
}

TEST_P(BlockMath, IsTheExactGelu) {
  const at::Tensor rows = Rows(5, 4);
  const at::Tensor bias = Vector();
  const at::Tensor expected = at::gelu((rows + bias).to(at::kDouble));
  BiasGelu(BlockOf(rows), 5, width(), bias.const_data_ptr<float>());
  // The last digit of numbers around 10 is worth 1e-6.
  EXPECT_LT(LargestDifference(rows, expected), 1e-6);
}

TEST_P(BlockMath, IsGeluToATenthOfWhatRoundingLoses) {
  const at::Tensor rows = Rows(5, 4);
  const at::Tensor bias = Vector();
  const at::Tensor expected = at::gelu((rows + bias).to(at::kDouble));
  BiasGeluToRound(BlockOf(rows), 5, width(), bias.const_data_ptr<float>());
  const at::Tensor bound = expected.abs() * 2e-4 + 1e-6;
  EXPECT_TRUE(((rows - expected).abs() <= bound).all().item<bool>());
}

TEST_P(BlockMath, IsTanh) {
  const at::Tensor rows = Rows(5, 4);
  const at::Tensor bias = Vector();
  const at::Tensor expected = at::tanh((rows + bias).to(at::kDouble));
  BiasTanh(BlockOf(rows), 5, width(), bias.const_data_ptr<float>());
  EXPECT_TRUE(((rows - expected).abs() <= expected.abs() * 4e-7).all().item<bool>());
}

TEST_P(BlockMath, CapsByTanh) {
  const at::Tensor rows = Rows(5, 40);
  const at::Tensor expected = 30 * at::tanh(rows.to(at::kDouble) * 0.5 / 30);
  CapRows(BlockOf(rows), 5, width(), 0.5F, 30);
  EXPECT_TRUE(((rows - expected).abs() <= expected.abs() * 5e-7).all().item<bool>());
}

TEST_P(BlockMath, IsReluAndGatesByTheSecondHalf) {
  const at::Tensor rows = at::randn({5, 2 * width()});
  const at::Tensor bias = at::randn({2 * width()});
  const at::Tensor biased = rows + bias;
  const at::Tensor expected =
      at::relu(biased.narrow(1, 0, width())) * biased.narrow(1, width(), width());
  BiasRelu(BlockOf(rows), 5, width(), bias.const_data_ptr<float>());
  Gate(BlockOf(rows), 5, width(), bias.const_data_ptr<float>());
  EXPECT_LT(LargestDifference(rows.narrow(1, 0, width()), expected), 1e-6);
}

TEST_P(BlockMath, NormalizesRowsEvenFarFromZero) {
  const at::Tensor rows = Rows(5, 2) + 100;
  const at::Tensor weight = Vector();
  const at::Tensor bias = Vector();
  const at::Tensor out = at::empty_like(rows);
  const at::Tensor expected = at::layer_norm(rows.to(at::kDouble), {width()},
                                             weight.to(at::kDouble), bias.to(at::kDouble), 1e-5);
  NormalizeRows(BlockOf(rows), 5, width(), weight.const_data_ptr<float>(),
                bias.const_data_ptr<float>(), 1e-5F, BlockOf(out));
  // What is lost of a mean of 100 is multiplied by as much as the row's values lie close together.
  const at::Tensor variance = rows.to(at::kDouble).var(1, /*unbiased=*/false);
  const double steepest = (variance + 1e-5).rsqrt().max().item<double>();
  EXPECT_LT(LargestDifference(out, expected), 1e-4 * std::max(steepest, 1.0));
}

TEST_P(BlockMath, DividesRowsByTheRootOfTheirMeanSquare) {
  const at::Tensor rows = Rows(5, 3);
  const at::Tensor weight = Vector();
  const at::Tensor exact = rows.to(at::kDouble);
  const at::Tensor expected =
      exact / (exact.square().mean(1, /*keepdim=*/true) + 1e-3).sqrt() * weight.to(at::kDouble);
  SetMeanSquares(BlockOf(rows), 5, width(), weight.const_data_ptr<float>(), 1e-3F, BlockOf(rows));
  EXPECT_LT(LargestDifference(rows, expected), 1e-5);
}

TEST_P(BlockMath, AddsRows) {
  const at::Tensor rows = Rows(5);
  const at::Tensor other = Rows(5);
  const at::Tensor expected = rows + other;
  AddRows(BlockOf(rows), 5, width(), BlockOf(other));
  EXPECT_EQ(LargestDifference(rows, expected), 0);
}

TEST_P(BlockMath, IsTheExponentialDownToNothing) {
  const at::Tensor rows = Rows(5, 20).clamp_(-86, 60);
  rows[0][0].fill_(std::numeric_limits<float>::lowest());
  const at::Tensor expected = rows.to(at::kDouble).exp();
  ExpRows(BlockOf(rows), 5, width());
  EXPECT_EQ(rows[0][0].item<float>(), 0);
  rows[0][0].fill_(1);
  expected[0][0].fill_(1);
  // F32 rounds the exponent as much.
  EXPECT_LT(((rows - expected).abs() / expected).max().item<double>(), 1e-5);
}

TEST_P(BlockMath, Transposes) {
  for (const int64_t count : {1, 4, 7, 33}) {
    const at::Tensor rows = Rows(count);
    const at::Tensor out = at::zeros({width(), count + 2});
    Transpose(BlockOf(rows), count, width(), BlockOf(out));
    EXPECT_TRUE(at::equal(out.narrow(1, 0, count), rows.t()));
  }
}

TEST_P(BlockMath, SumsRowsAndProductsWithAVector) {
  const at::Tensor rows = Rows(5);
  const at::Tensor vector = Vector();
  const at::Tensor sums = Vector();
  const at::Tensor dots = at::ones({5});
  const at::Tensor expected_sums = sums + rows.sum(0);
  const at::Tensor expected_dots = 1 + at::mv(rows, vector);
  AddRowSums(BlockOf(rows), 5, width(), sums.mutable_data_ptr<float>());
  AddDots(BlockOf(rows), 5, width(), vector.const_data_ptr<float>(),
          dots.mutable_data_ptr<float>());
  EXPECT_LT(LargestDifference(sums, expected_sums), 1e-5);
  EXPECT_LT(LargestDifference(dots, expected_dots), 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Widths, BlockMath, ::testing::Values(1, 3, 15, 16, 17, 32, 100, 256),
                         ::testing::PrintToStringParamName());

TEST(BlockMathLimits, AGeluFarOutIsItsArgumentOrNothing) {
  const at::Tensor row =
      at::tensor({-1e30, -1000., -6.5, 6.5, 1000., 1e30}, at::kFloat).view({1, 6});
  const at::Tensor expected = at::clamp_min(row, 0);
  BiasGelu(BlockOf(row), 1, 6, nullptr);
  EXPECT_LT(LargestDifference(row, expected), 1e-9);
}

TEST(BlockMathLimits, TheLowerTriangleIsWhatRowsSeeOfThoseBefore) {
  const at::Tensor scores = at::randn({37, 64}).narrow(1, 0, 37);
  const at::Tensor expected = scores.tril();
  const at::Tensor sums = at::empty({37});
  LowerTriangle(BlockOf(scores), 37, sums.mutable_data_ptr<float>());
  EXPECT_TRUE(at::equal(scores, expected));
  EXPECT_LT(LargestDifference(sums, expected.sum(1)), 1e-5);
}

TEST(BlockMathLimits, TheLowerTriangleOfBucketsIsWhatRowsSeeOfThoseBeforeTheirOwn) {
  const at::Tensor scores = at::randn({37, 64}).narrow(1, 0, 37);
  const at::Tensor buckets = at::arange(37).div(5, "floor");
  const at::Tensor expected = scores * buckets.unsqueeze(0).lt(buckets.unsqueeze(1));
  const at::Tensor sums = at::empty({37});
  LowerTriangle(BlockOf(scores), 37, sums.mutable_data_ptr<float>(), 5);
  EXPECT_TRUE(at::equal(scores, expected));
  EXPECT_LT(LargestDifference(sums, expected.sum(1)), 1e-5);
}

TEST(BlockMathLimits, TurnsPairsOfFeaturesByTheTablesAngles) {
  const at::Tensor rows = at::randn({3, 2 * 6});  // two heads of three pairs
  const at::Tensor angles = at::randn({3, 3});
  const at::Tensor table = at::cat({angles.sin(), angles.cos()}, 1);
  const at::Tensor pairs = rows.clone().view({3, 2, 3, 2});
  const at::Tensor sine = angles.sin().unsqueeze(1);
  const at::Tensor cosine = angles.cos().unsqueeze(1);
  const at::Tensor first = pairs.select(3, 0);
  const at::Tensor second = pairs.select(3, 1);
  const at::Tensor expected =
      at::stack({first * cosine - second * sine, second * cosine + first * sine}, -1).view({3, 12});
  RotateRows(BlockOf(rows), 3, 2, 6, BlockOf(table));
  EXPECT_LT(LargestDifference(rows, expected), 1e-6);
}

TEST(BlockMath, TurnsTheHalvesOfEachHead) {
  const at::Tensor rows = at::randn({3, 12});
  const at::Tensor angles = at::rand({3, 3});
  const at::Tensor table = at::cat({angles.sin(), angles.cos()}, 1);
  const at::Tensor heads = rows.view({3, 2, 2, 3});
  const at::Tensor first = heads.select(2, 0).clone();
  const at::Tensor second = heads.select(2, 1).clone();
  const at::Tensor sine = angles.sin().unsqueeze(1);
  const at::Tensor cosine = angles.cos().unsqueeze(1);
  const at::Tensor expected =
      at::stack({first * cosine - second * sine, second * cosine + first * sine}, 2).view({3, 12});
  RotateHalves(BlockOf(rows), 3, 2, 6, BlockOf(table));
  EXPECT_LT(LargestDifference(rows, expected), 1e-6);
}

}  // namespace
}  // namespace linserve
