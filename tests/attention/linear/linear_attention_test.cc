#include "attention/linear/linear_attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "attention/layouts.h"
#include "attention/rows/aten.h"

namespace linserve {
namespace {

at::Tensor AttendLinear(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                        const at::Tensor& mask = {}) {
  at::Tensor out = at::empty_like(queries);
  LinearAttention(queries, keys, values, mask, out);
  return out;
}

// Computes the formula as it stands, in F64.
at::Tensor NaiveLinear(const at::Tensor& queries, const at::Tensor& keys,
                       const at::Tensor& values) {
  const at::Tensor k = at::softmax(keys.to(at::kDouble), -2);
  const at::Tensor q =
      at::softmax(queries.to(at::kDouble), -1) / std::sqrt(static_cast<double>(queries.size(-1)));
  return at::matmul(q, at::matmul(k.transpose(-2, -1), values.to(at::kDouble)));
}

TEST(LinearAttention, OfOneTokenIsItsValueOverTheRootOfTheWidth) {
  const at::Tensor values = Matrix({{1, 2, 3, 4}});
  EXPECT_LT(
      LargestDifference(AttendLinear(at::randn({1, 4}), at::randn({1, 4}), values), values / 2),
      1e-6);
}

TEST(LinearAttention, WeighsTheValuesByTheSoftmaxOfTheKeysOverTheLength) {
  const at::Tensor result =
      AttendLinear(Matrix({{7}, {-3}}), Matrix({{1}, {2}}), Matrix({{10}, {20}}));
  const double weight = 1 / (1 + std::exp(2.0 - 1.0));
  const double mean = weight * 10 + (1 - weight) * 20;
  EXPECT_NEAR(result[0].item<float>(), mean, 1e-5);
  EXPECT_NEAR(result[1].item<float>(), mean, 1e-5);
}

TEST(LinearAttention, IsTheFormulaForAnyLeadingAxesAndLengths) {
  for (const auto& [n, m, width] : {std::tuple{1, 1, 3}, {5, 2, 8}, {3, 40, 4}, {1, 9, 16}}) {
    const at::Tensor queries = at::randn({2, 3, n, width}) * 3;
    const at::Tensor keys = at::randn({2, 3, m, width}) * 3;
    const at::Tensor values = at::randn({2, 3, m, width});
    EXPECT_LT(
        LargestDifference(AttendLinear(queries, keys, values), NaiveLinear(queries, keys, values)),
        1e-5);
  }
}

TEST(LinearAttention, LeavesMaskedKeysOut) {
  const at::Tensor queries = at::randn({2, 3, 6, 4});
  const at::Tensor keys = at::randn({2, 3, 6, 4});
  const at::Tensor values = at::randn({2, 3, 6, 4});
  const at::Tensor mask = at::arange(6).lt(4).expand({2, 1, 6});  // of each sequence, for all heads
  const at::Tensor expected = NaiveLinear(queries, keys.narrow(2, 0, 4), values.narrow(2, 0, 4));
  EXPECT_LT(LargestDifference(AttendLinear(queries, keys, values, mask), expected), 1e-5);
}

TEST(LinearAttention, IsZeroWhereEveryKeyIsMasked) {
  const at::Tensor x = at::randn({5, 4});
  EXPECT_EQ(AttendLinear(x, x, x, at::zeros({5}, at::kBool)).abs().max().item<float>(), 0);
}

TEST(LinearAttention, ComputesLongSequencesInSlicesWithTheSameResult) {
  const int64_t length = 90000;  // of 64 features: more than are held at once
  const at::Tensor queries = at::randn({1, length, 64});
  const at::Tensor keys = at::randn({1, length, 64}) * 4;
  const at::Tensor values = at::randn({1, length, 64});
  const at::Tensor mask = at::rand({1, length}).lt(0.8);
  const at::Tensor seen = mask[0].nonzero().squeeze(1);
  const at::Tensor last = queries.narrow(1, length - 3, 3);
  const at::Tensor expected =
      NaiveLinear(last, keys.index_select(1, seen), values.index_select(1, seen));
  const at::Tensor result = AttendLinear(queries, keys, values, mask).narrow(1, length - 3, 3);
  EXPECT_LT(LargestDifference(result, expected), 1e-5);
}

TEST(LinearAttention, StaysFiniteForLargeNumbersInSmallTypes) {
  for (const at::ScalarType type : {at::kHalf, at::kBFloat16}) {
    const at::Tensor x = (at::randn({3, 7, 4}).sign() * 1e4).to(type);
    for (const at::Tensor& mask : {at::Tensor(), at::zeros({7}, at::kBool)}) {
      EXPECT_TRUE(AttendLinear(x, x, x, mask).isfinite().all().item<bool>());
    }
  }
}

}  // namespace
}  // namespace linserve
