#include "attention/linear/kernel_attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "attention/naive_attention.h"
#include "attention/rows/aten.h"

namespace linserve {
namespace {

// phi(1) = 2, phi(0) = 1, phi(-1) = 1/e.
TEST(KernelAttention, WeighsValuesByProductsOfFeatures) {
  const double e = std::exp(-1.0);
  const at::Tensor query = Matrix({{1, 0}});
  const at::Tensor key = Matrix({{0, 1}, {-1, 0}});
  const at::Tensor value = Matrix({{1, 10}, {2, 20}});
  // Weights 2·1 + 1·2 = 4 and 2/e + 1.
  const double second = 2 * e + 1;
  EXPECT_LT(LargestDifference(KernelAttention(query, key, value, {}, false),
                              Matrix({{4 + 2 * second, 40 + 20 * second}})),
            1e-5);
  const double sum = 4 + second;
  EXPECT_LT(LargestDifference(KernelAttention(query, key, value, {}, true),
                              Matrix({{(4 + 2 * second) / sum, (40 + 20 * second) / sum}})),
            1e-5);
}

TEST(KernelAttention, SumsTheKeysUpToTheQueryWhenCausal) {
  const at::Tensor zeros = at::zeros({3, 1});
  const at::Tensor value = Matrix({{1}, {2}, {6}});
  EXPECT_LT(LargestDifference(KernelAttention(zeros, zeros, value, {.causal = true}, false),
                              Matrix({{1}, {3}, {9}})),
            1e-6);
  EXPECT_LT(LargestDifference(KernelAttention(zeros, zeros, value, {.causal = true}, true),
                              Matrix({{1}, {1.5}, {3}})),
            1e-6);
}

TEST(KernelAttention, KeepsTheDigitsOfWeightsNearZero) {
  // elu(-12) + 1 computed as it is written would keep one digit of e^-12.
  const at::Tensor query = at::full({1, 2}, -12.0F);
  const at::Tensor key = Matrix({{-12, -13}, {-14, -11}});
  const at::Tensor value = Matrix({{1}, {2}});
  EXPECT_LT(LargestDifference(KernelAttention(query, key, value, {}, true),
                              NaiveKernelNormalized(query, key, value, {})),
            1e-6);
}

TEST(KernelAttention, GivesZerosWhereWeightsAreTooSmallForTheirType) {
  const at::Tensor low = at::full({3, 4}, -1e4F);
  for (bool causal : {false, true}) {
    EXPECT_EQ(
        LargestDifference(KernelAttention(low, low, at::ones({3, 2}), {.causal = causal}, true),
                          at::zeros({3, 2})),
        0);
  }
}

TEST(KernelAttention, EndsAtTheLargestF16WhereSumsAreLarger) {
  const at::Tensor large = at::full({2, 2}, 1e4F).to(at::kHalf);
  const at::Tensor result = KernelAttention(large, large, large, {}, false);
  EXPECT_EQ(LargestDifference(result, at::full({2, 2}, 65504.0)), 0);
}

// Any way of cutting a causal sequence gives the rows of the whole.
TEST(ContinueFeatureAttention, GoesOnFromTheStateOfTheRowsBefore) {
  const int64_t length = 300;
  const at::Tensor query = at::randn({2, length, 4});
  const at::Tensor key = at::randn({2, length, 4});
  const at::Tensor value = at::randn({2, length, 3});
  const at::Tensor mask = at::rand({2, length}).gt(0.3);
  const at::Tensor whole = KernelAttention(query, key, value, {mask, true}, true);
  FeatureState state;
  int64_t row = 0;
  for (int64_t count : {1, 1, 127, 128, 40, 3}) {
    const at::Tensor rows = ContinueFeatureAttention(
        query.narrow(1, row, count), key.narrow(1, row, count), value.narrow(1, row, count),
        mask.narrow(1, row, count), KernelForm(true), state);
    EXPECT_LT(LargestDifference(rows, whole.narrow(1, row, count)), 1e-5) << row;
    row += count;
  }
  EXPECT_EQ(row, length);
}

}  // namespace
}  // namespace linserve
