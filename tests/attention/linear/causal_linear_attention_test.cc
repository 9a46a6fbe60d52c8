#include "attention/linear/causal_linear_attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "attention/layouts.h"
#include "attention/rows/aten.h"

namespace linserve {
namespace {

at::Tensor AttendCausal(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                        int64_t bucket = 1, const at::Tensor& mask = {}) {
  at::Tensor out = at::empty_like(queries);
  CausalState state;
  CausalLinearAttention(queries, keys, values, mask, bucket, state, out);
  return out;
}

// Computes the formula as it stands, in F64, with all pairs of rows.
at::Tensor NaiveCausal(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                       int64_t bucket = 1, const at::Tensor& mask = {}) {
  at::Tensor k = keys.to(at::kDouble).exp();
  if (mask.defined()) k = k * mask.unsqueeze(-1);
  const at::Tensor q =
      at::softmax(queries.to(at::kDouble), -1) / std::sqrt(static_cast<double>(queries.size(-1)));
  const at::Tensor rows = at::arange(queries.size(-2));
  const at::Tensor buckets = rows.div(bucket, "floor");
  const at::Tensor seen = bucket == 1 ? rows.unsqueeze(0).le(rows.unsqueeze(1))
                                      : buckets.unsqueeze(0).lt(buckets.unsqueeze(1));
  const at::Tensor weights = at::matmul(q, k.transpose(-2, -1)) * seen;
  return at::matmul(weights, values.to(at::kDouble)) /
         weights.sum(-1, /*keepdim=*/true).clamp_min(1e-3);
}

TEST(CausalLinearAttention, OfOneTokenIsItsValue) {
  const at::Tensor values = Matrix({{1, 2, 3, 4}});
  EXPECT_LT(LargestDifference(AttendCausal(at::randn({1, 4}), at::randn({1, 4}), values), values),
            1e-6);
}

TEST(CausalLinearAttention, WeighsTheValuesUpToEachRowByTheExponentialsOfTheKeys) {
  const at::Tensor result =
      AttendCausal(Matrix({{5}, {5}}), Matrix({{1}, {2}}), Matrix({{10}, {20}}));
  EXPECT_NEAR(result[0].item<float>(), 10, 1e-5);
  EXPECT_NEAR(result[1].item<float>(),
              (std::exp(1) * 10 + std::exp(2) * 20) / (std::exp(1) + std::exp(2)), 1e-4);
}

TEST(CausalLinearAttention, DividesByTheFloorWhereTheKeysAreVeryNegative) {
  const at::Tensor result = AttendCausal(Matrix({{0}}), Matrix({{-10}}), Matrix({{3}}));
  EXPECT_NEAR(result.item<float>(), std::exp(-10) * 3 / 1e-3, 1e-6);
}

TEST(CausalLinearAttention, WithABlindSpotSeesOnlyTheBucketsBeforeItsOwn) {
  const at::Tensor values = Matrix({{1}, {2}, {30}, {40}, {500}});
  const at::Tensor zeros = at::zeros({5, 1});
  const at::Tensor expected = Matrix({{0}, {0}, {1.5}, {1.5}, {73.0 / 4}});
  EXPECT_LT(LargestDifference(AttendCausal(zeros, zeros, values, 2), expected), 1e-5);
}

TEST(CausalLinearAttention, IsTheFormulaForAnyLengthAndBucket) {
  for (int64_t bucket : {1, 2, 3, 8, 40, 64, 100}) {
    for (int64_t length : {1, 2, 7, 63, 64, 65, 130, 400}) {
      const at::Tensor queries = at::randn({2, 3, length, 4}) * 2;
      const at::Tensor keys = at::randn({2, 3, length, 4}) * 4;  // some near the floor
      const at::Tensor values = at::randn({2, 3, length, 4});
      const at::Tensor mask = at::rand({2, 1, length}).lt(0.7);
      EXPECT_LT(LargestDifference(AttendCausal(queries, keys, values, bucket),
                                  NaiveCausal(queries, keys, values, bucket)),
                1e-5)
          << length << " rows, bucket " << bucket;
      EXPECT_LT(LargestDifference(AttendCausal(queries, keys, values, bucket, mask),
                                  NaiveCausal(queries, keys, values, bucket, mask)),
                1e-5)
          << length << " rows, bucket " << bucket;
    }
  }
}

TEST(CausalLinearAttention, IsZeroBeforeTheFirstKeyThatIsNotMasked) {
  const at::Tensor x = at::randn({5, 4});
  const at::Tensor mask = at::arange(5).ge(3);
  const at::Tensor result = AttendCausal(x, x, x, 1, mask);
  EXPECT_EQ(result.narrow(0, 0, 3).abs().max().item<float>(), 0);
  EXPECT_LT(LargestDifference(result[3], x[3]), 1e-5);
}

TEST(CausalLinearAttention, LeavesMoreBlocksThanFitAtOnceWithTheSameResult) {
  const int64_t length = 40000;  // of 128 features: more than are held at once
  const at::Tensor queries = at::randn({1, length, 128});
  const at::Tensor keys = at::randn({1, length, 128});
  const at::Tensor values = at::randn({1, length, 128}).to(at::kDouble);
  const at::Tensor q = at::softmax(queries[0][length - 1].to(at::kDouble), -1);
  const at::Tensor weights = at::mv(keys[0].to(at::kDouble).exp(), q);
  const at::Tensor expected = at::mv(values[0].t(), weights) / weights.sum();
  const at::Tensor result = AttendCausal(queries, keys, values.to(at::kFloat))[0][length - 1];
  EXPECT_LT(LargestDifference(result, expected), 1e-5);
}

TEST(CausalLinearAttention, KeepsTheFormulaWhereExponentialsOverflowF32) {
  const at::Tensor queries = at::randn({1, 100, 4});
  const at::Tensor values = at::randn({1, 100, 4});
  for (double largest : {50.0, 100.0, 650.0}) {
    at::Tensor keys = at::randn({1, 100, 4}) - 8;  // first rows at the floor
    keys.narrow(1, 40, 60).add_(largest);
    EXPECT_LT(
        LargestDifference(AttendCausal(queries, keys, values), NaiveCausal(queries, keys, values)),
        1e-5)
        << largest;
  }
}

TEST(CausalLinearAttention, StaysAnAverageWhereExponentialsOverflowF64) {
  for (double key : {800.0, 1e4, 1e30}) {
    const at::Tensor values = at::randn({1, 70, 4});
    const at::Tensor result =
        AttendCausal(at::randn({1, 70, 4}), at::full({1, 70, 4}, key), values);
    const at::Tensor means = values.cumsum(1) / at::arange(1, 71).unsqueeze(1);
    EXPECT_LT(LargestDifference(result, means), 1e-5) << key;
  }
}

TEST(CausalLinearAttention, StaysFiniteForLargeNumbersInSmallTypes) {
  for (const at::ScalarType type : {at::kHalf, at::kBFloat16}) {
    const at::Tensor x = (at::randn({3, 70, 4}).sign() * 1e4).to(type);
    for (int64_t bucket : {1, 2, 100}) {
      for (const at::Tensor& mask : {at::Tensor(), at::zeros({70}, at::kBool)}) {
        EXPECT_TRUE(AttendCausal(x, x, x, bucket, mask).isfinite().all().item<bool>());
      }
    }
  }
}

TEST(CausalLinearAttention, GoesOnFromWhatItHasRead) {
  for (int64_t bucket : {1, 5}) {
    const at::Tensor queries = at::randn({2, 200, 4});
    at::Tensor keys = at::randn({2, 200, 4});
    keys.narrow(1, 150, 50).add_(90);  // in F64 from there on
    const at::Tensor values = at::randn({2, 200, 4});
    at::Tensor out = at::empty_like(queries);
    CausalState state;
    for (int64_t row : {0, 70, 145}) {
      const int64_t count = row == 0 ? 70 : row == 70 ? 75 : 55;
      CausalLinearAttention(queries.narrow(1, row, count), keys.narrow(1, row, count),
                            values.narrow(1, row, count), {}, bucket, state,
                            out.narrow(1, row, count));
    }
    EXPECT_LT(LargestDifference(out, NaiveCausal(queries, keys, values, bucket)), 1e-5) << bucket;
  }
}

}  // namespace
}  // namespace linserve
