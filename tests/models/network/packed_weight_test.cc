#include "models/network/packed_weight.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "attention/products/bf16_product.h"
#include "attention/products/block_product.h"
#include "attention/products/int8_product.h"
#include "attention/rows/aten.h"
#include "attention/rows/threads.h"

namespace linserve {
namespace {

class PackedWeightTest : public ::testing::TestWithParam<DType> {
 protected:
  void SetUp() override {
    const bool has = GetParam() == DType::kF32 ||
                     (GetParam() == DType::kBF16 ? HasBf16Kernels() : HasInt8Kernels());
    if (!has) GTEST_SKIP() << "this CPU has no kernels for " << Name(GetParam());
  }

  // Returns how far each element of rows · weightᵀ may be from the exact one: both operands are
  // rounded to half a step.
  static at::Tensor Bound(const at::Tensor& rows, const at::Tensor& weight) {
    const at::Tensor x = rows.abs().to(at::kDouble);
    const at::Tensor w = weight.abs().to(at::kDouble);
    const at::Tensor sums = at::mm(x, w.t());
    if (GetParam() == DType::kF32) return sums * 1e-6 + 1e-6;
    if (GetParam() == DType::kBF16) return sums / 128 + 1e-6;
    const at::Tensor x_step =
        (rows.amax(1, /*keepdim=*/true) - rows.amin(1, /*keepdim=*/true)).to(at::kDouble) / 510;
    const at::Tensor w_step = w.amax(1, /*keepdim=*/true) / 254;
    const auto inputs = static_cast<double>(rows.size(1));
    return at::mm(x_step, w.sum(1, /*keepdim=*/true).t()) +
           at::mm(x.sum(1, /*keepdim=*/true), w_step.t()) + at::mm(x_step, w_step.t()) * inputs +
           1e-5 * sums;
  }
};

TEST_P(PackedWeightTest, MultipliesRowsOfAnyNumberAndWidth) {
  for (const auto& [count, inputs, outputs] :
       std::vector<std::array<int64_t, 3>>{{1, 1, 1},
                                           {2, 3, 5},
                                           {15, 64, 33},
                                           {16, 7, 64},
                                           {17, 256, 100},
                                           {128, 33, 65},
                                           {100, 1500, 70},
                                           {77, 2051, 130}}) {
    SCOPED_TRACE(testing::Message() << count << " rows of " << inputs << " to " << outputs);
    const at::Tensor weight = at::randn({outputs, inputs});
    const at::Tensor rows = at::randn({count, inputs + 3}).narrow(1, 1, inputs);
    const at::Tensor out = at::randn({count, outputs + 5}).narrow(1, 2, outputs);
    const at::Tensor before = out.clone();
    const PackedWeight packed(weight, GetParam());
    const at::Tensor exact = at::mm(rows.to(at::kDouble), weight.t().to(at::kDouble));
    const at::Tensor bound = Bound(rows, weight);
    packed.Multiply(BlockOf(rows), count, BlockOf(out), /*add=*/false);
    EXPECT_TRUE(((out - exact).abs() <= bound).all().item<bool>());
    out.copy_(before);
    packed.Multiply(BlockOf(rows), count, BlockOf(out), /*add=*/true);
    EXPECT_TRUE(((out - before - exact).abs() <= bound).all().item<bool>());
  }
}

TEST_P(PackedWeightTest, ARowIsTheSameWhateverStandsBesideIt) {
  const at::Tensor weight = at::randn({100, 96});
  const PackedWeight packed(weight, GetParam());
  const at::Tensor rows = at::randn({128, 96});
  const at::Tensor all = at::empty({128, 100});
  packed.Multiply(BlockOf(rows), 128, BlockOf(all), /*add=*/false);
  for (const int64_t row : {0, 1, 15, 16, 63, 127}) {
    const at::Tensor alone = at::empty({1, 100});
    packed.Multiply(BlockOf(rows, row), 1, BlockOf(alone), /*add=*/false);
    EXPECT_TRUE(at::allclose(all[row], alone[0], 1e-5, 1e-5)) << row;
  }
}

TEST_P(PackedWeightTest, MakesAllRowsOnceBeforeTheyAreRead) {
  for (const auto& [count, inputs] : {std::pair<int64_t, int64_t>{1, 3}, {37, 256}, {128, 5000}}) {
    SCOPED_TRACE(testing::Message() << count << " rows of " << inputs);
    const PackedWeight packed(at::randn({70, inputs}), GetParam());
    const at::Tensor rows = at::randn({count, inputs});
    const at::Tensor expected = at::empty({count, 70});
    packed.Multiply(BlockOf(rows), count, BlockOf(expected), /*add=*/false);
    const at::Tensor made = at::full({count, inputs}, std::nanf(""));
    const at::Tensor out = at::empty({count, 70});
    packed.Multiply(BlockOf(made), count, BlockOf(out), /*add=*/false, nullptr,
                    [&](int64_t row, int64_t some) {
                      at::Tensor part = made.narrow(0, row, some);
                      EXPECT_TRUE(part.isnan().all().item<bool>());
                      part.copy_(rows.narrow(0, row, some));
                    });
    EXPECT_TRUE(at::equal(out, expected));
  }
}

TEST_P(PackedWeightTest, ThreadsThatShareTheColumnsChangeNothing) {
  for (const int64_t inputs : {96, 1001}) {
    const PackedWeight packed(at::randn({1000, inputs}), GetParam());
    const at::Tensor rows = at::randn({9, inputs});
    const at::Tensor bias = at::randn({1000});
    const auto multiply = [&](int threads) {
      const ThreadsScope scope(threads);
      at::Tensor out = at::ones({9, 1000});
      packed.Multiply(BlockOf(rows), 9, BlockOf(out), /*add=*/true, bias.const_data_ptr<float>());
      return out;
    };
    const at::Tensor alone = multiply(1);
    for (const int threads : {2, 3, 8}) EXPECT_TRUE(at::equal(multiply(threads), alone));
  }
}

TEST_P(PackedWeightTest, WhatIsNotFiniteStaysInItsRow) {
  const PackedWeight packed(at::randn({64, 96}), GetParam());
  for (const float fault :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
        -std::numeric_limits<float>::infinity()}) {
    at::Tensor rows = at::randn({20, 96});
    rows[3][5] = fault;
    const at::Tensor out = at::empty({20, 64});
    packed.Multiply(BlockOf(rows), 20, BlockOf(out), /*add=*/false);
    EXPECT_FALSE(out[3].isfinite().any().item<bool>()) << fault;
    out[3].zero_();
    EXPECT_TRUE(out.isfinite().all().item<bool>()) << fault;
  }
}

TEST_P(PackedWeightTest, RowsOfZerosAndOfTinyNumbersAreThat) {
  at::Tensor weight = at::randn({64, 96});
  weight[7].zero_();
  const PackedWeight packed(weight, GetParam());
  at::Tensor rows = at::zeros({3, 96});
  rows[1].fill_(1e-36F);
  const at::Tensor out = at::empty({3, 64});
  packed.Multiply(BlockOf(rows), 3, BlockOf(out), /*add=*/false);
  EXPECT_EQ(out[0].abs().max().item<float>(), 0);
  EXPECT_LT(out.abs().max().item<float>(), 1e-30F);
}

TEST(PackedWeight, OfAnotherTypeThanF32IsNone) {
  EXPECT_FALSE(PackedWeight(at::randn({4, 4}).to(at::kBFloat16), DType::kF32));
}

INSTANTIATE_TEST_SUITE_P(Types, PackedWeightTest,
                         ::testing::Values(DType::kF32, DType::kBF16, DType::kI8));

}  // namespace
}  // namespace linserve
