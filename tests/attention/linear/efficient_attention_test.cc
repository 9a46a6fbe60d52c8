#include "attention/linear/efficient_attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "attention/naive_attention.h"
#include "attention/rows/aten.h"

namespace linserve {
namespace {

TEST(EfficientAttention, MixesTheContextOfEachFeature) {
  // Feature 0 of the keys weighs the values 3:1, feature 1 equally; the query 1:2.
  const at::Tensor key = Matrix({{std::log(3.0), 5}, {0, 5}});
  const at::Tensor query = Matrix({{0, std::log(2.0)}});
  const at::Tensor value = Matrix({{4, 8}, {0, 40}});
  const at::Tensor expected = Matrix({{(3 + 2 * 2) / 3.0, (16 + 2 * 24) / 3.0}});
  EXPECT_LT(LargestDifference(EfficientAttention(query, key, value, {}), expected), 1e-5);
}

TEST(EfficientAttention, RenormalisesTheKeysForEachQueryWhenCausal) {
  const at::Tensor key = Matrix({{std::log(3.0)}, {0}, {std::log(4.0)}});
  const at::Tensor value = Matrix({{1}, {5}, {8}});
  // 1; (3·1 + 5)/4; (3·1 + 5 + 4·8)/8.
  EXPECT_LT(LargestDifference(EfficientAttention(at::randn({3, 1}), key, value, {.causal = true}),
                              Matrix({{1}, {2}, {5}})),
            1e-5);
}

TEST(EfficientAttention, IsExactForCausalKeysThatGrowPastAnyExponential) {
  const int64_t length = 150;
  const at::Tensor query = at::randn({length, 3});
  const at::Tensor value = at::randn({length, 4});
  for (double scale : {30.0, 1e3, 1e4}) {
    // At random, and ever higher: the earlier a key, the less of it is left.
    for (const at::Tensor& key :
         {at::randn({length, 3}) * scale,
          at::arange(length).unsqueeze(1).expand({length, 3}) * scale,
          at::arange(length, 0, -1).unsqueeze(1).expand({length, 3}) * scale}) {
      const at::Tensor exact = key.to(at::kFloat);
      EXPECT_LT(LargestDifference(EfficientAttention(query, exact, value, {.causal = true}),
                                  NaiveEfficient(query, exact, value, {.causal = true})),
                1e-5)
          << scale;
    }
  }
}

TEST(EfficientAttention, DoesNotDependOnAnOffsetOfTheKeys) {
  const at::Tensor query = at::randn({40, 3});
  const at::Tensor key = at::randint(-8, 8, {40, 3}, at::kFloat);  // so that sums are exact
  const at::Tensor value = at::randn({40, 4});
  for (bool causal : {false, true}) {
    const at::Tensor expected = EfficientAttention(query, key, value, {.causal = causal});
    for (double offset : {-1e4, 1e4}) {
      EXPECT_LT(LargestDifference(
                    EfficientAttention(query, key + offset, value, {.causal = causal}), expected),
                1e-6);
    }
  }
}

// Any way of cutting a causal sequence gives the rows of the whole.
TEST(ContinueEfficientAttention, GoesOnFromTheStateOfTheRowsBefore) {
  const int64_t length = 300;
  const at::Tensor query = at::randn({2, length, 4});
  const at::Tensor key = at::randn({2, length, 4}) * 40;
  const at::Tensor value = at::randn({2, length, 3});
  const at::Tensor mask = at::rand({2, length}).gt(0.3);
  const at::Tensor whole = EfficientAttention(query, key, value, {mask, true});
  EfficientState state;
  int64_t row = 0;
  for (int64_t count : {1, 1, 127, 128, 40, 3}) {
    const at::Tensor rows =
        ContinueEfficientAttention(query.narrow(1, row, count), key.narrow(1, row, count),
                                   value.narrow(1, row, count), mask.narrow(1, row, count), state);
    EXPECT_LT(LargestDifference(rows, whole.narrow(1, row, count)), 1e-5) << row;
    row += count;
  }
  EXPECT_EQ(row, length);
}

}  // namespace
}  // namespace linserve
