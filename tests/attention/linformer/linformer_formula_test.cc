#include <gtest/gtest.h>

#include <cmath>

#include "attention/linformer/linformer_attention.h"
#include "attention/naive_attention.h"
#include "attention/rows/aten.h"

namespace linserve {
namespace {

// Computes the formula in float64: softmax attention to the slots.
at::Tensor NaiveLinformer(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                          const at::Tensor& e, const at::Tensor& f, const Visible& visible) {
  at::Tensor k = key.to(at::kDouble);
  at::Tensor v = value.to(at::kDouble);
  if (visible.mask.defined()) {
    k = k * visible.mask.unsqueeze(-1);
    v = v * visible.mask.unsqueeze(-1);
  }
  return NaiveSoftmax(query, at::matmul(e.to(at::kDouble), k), at::matmul(f.to(at::kDouble), v),
                      {.causal = visible.causal});
}

TEST(LinformerAttention, AttendsToSlotsThatAreSumsOfKeysAndOfValues) {
  // Each row of a projection makes a slot: keys 2·1 + 3·0 = 2 and 0·1 + 1·0 = 0, d = 1; values 1 +
  // 2 and 1.
  const at::Tensor result =
      LinformerAttention(Matrix({{1}}), Matrix({{1}, {0}}), Matrix({{1}, {2}}),
                         Matrix({{2, 3}, {0, 1}}), Matrix({{1, 1}, {1, 0}}), {});
  const double weight = std::exp(2.0) / (std::exp(2.0) + 1);
  EXPECT_LT(LargestDifference(result, Matrix({{3 * weight + (1 - weight)}})), 1e-5);
}

TEST(LinformerAttention, EqualsItsFormulaForFewerAndMoreSlotsThanKeys) {
  for (int64_t length : {1, 2, 3, 31, 32, 33, 64, 65, 100}) {
    for (int64_t slots : {1, 7, 130}) {
      for (bool causal : {false, true}) {
        const at::Tensor query = at::randn({2, length, 5});
        const at::Tensor key = at::randn({2, length, 5});
        const at::Tensor value = at::randn({2, length, 7});
        const at::Tensor e = at::randn({slots, length}) / std::sqrt(length);
        const at::Tensor f = at::randn({slots, length}) / std::sqrt(length);
        const Visible visible{at::rand({2, length}).gt(0.3), causal};
        EXPECT_LT(LargestDifference(LinformerAttention(query, key, value, e, f, visible),
                                    NaiveLinformer(query, key, value, e, f, visible)),
                  1e-5)
            << length << " keys, " << slots << " slots";
      }
    }
  }
}

TEST(LinformerAttention, OfOneTokenAndOneSlotIsItsProjectedValue) {
  EXPECT_LT(LargestDifference(LinformerAttention(Matrix({{5}}), Matrix({{7}}), Matrix({{4, 6}}),
                                                 Matrix({{9}}), Matrix({{0.5}}), {.causal = true}),
                              Matrix({{2, 3}})),
            1e-6);
}

TEST(LinformerAttention, HidesSlotsFromEarlierQueriesWhenCausal) {
  const at::Tensor zeros = at::zeros({3, 2});
  const at::Tensor value = Matrix({{2}, {4}, {9}});
  const at::Tensor identity = at::eye(3);
  // Slots are positions here: means of the first, of the first two, of all.
  EXPECT_LT(LargestDifference(
                LinformerAttention(zeros, zeros, value, identity, identity, {.causal = true}),
                Matrix({{2}, {3}, {5}})),
            1e-6);
}

TEST(LinformerAttention, GivesZerosWhereNoKeyIsVisible) {
  const Visible nothing{at::zeros({4}, at::kBool)};
  EXPECT_EQ(
      LargestDifference(LinformerAttention(at::randn({4, 3}), at::randn({4, 3}), at::randn({4, 2}),
                                           at::randn({5, 4}), at::randn({5, 4}), nothing),
                        at::zeros({4, 2})),
      0);
}

TEST(LinformerAttention, IsFiniteForLargeValuesInEveryType) {
  for (at::ScalarType type : {at::kHalf, at::kBFloat16, at::kFloat}) {
    const auto large = [&](int64_t rows, int64_t width) {
      return (at::randn({rows, width}) * 1e4).to(type);
    };
    const at::Tensor result =
        LinformerAttention(large(6, 8), large(6, 8), large(6, 4), large(9, 6), large(9, 6), {});
    EXPECT_TRUE(result.isfinite().all().item<bool>()) << toString(type);
    EXPECT_EQ(result.scalar_type(), type);
  }
}

}  // namespace
}  // namespace linserve
