#include "attention/linear/taylor_attention.h"

#include <gtest/gtest.h>

#include "attention/naive_attention.h"
#include "attention/rows/aten.h"

namespace linserve {
namespace {

TEST(TaylorAttention, WeighsValuesByOnePlusTheCosine) {
  // Cosines of (3, 0) with the keys: 1, 0 and 0.6; so the weights are 2, 1 and 1.6.
  const at::Tensor result = TaylorAttention(Matrix({{3, 0}}), Matrix({{5, 0}, {0, 0.1}, {3, 4}}),
                                            Matrix({{1}, {2}, {10}}), {});
  EXPECT_LT(LargestDifference(result, Matrix({{(2 + 2 + 16) / 4.6}})), 1e-6);
}

TEST(TaylorAttention, TakesTheCosineOfAZeroRowAsZero) {
  const at::Tensor result =
      TaylorAttention(at::zeros({2, 3}), at::randn({2, 3}), Matrix({{2}, {4}}), {.causal = true});
  EXPECT_LT(LargestDifference(result, Matrix({{2}, {3}})), 1e-6);
}

TEST(TaylorAttention, StaysFiniteWhereEveryKeyOpposesTheQuery) {
  for (bool causal : {false, true}) {
    for (int64_t keys : {1, 2, 200}) {
      const at::Tensor query = at::randn({keys, 7});
      const at::Tensor key = (-query.narrow(0, keys - 1, 1)).expand({keys, 7});
      const at::Tensor result =
          TaylorAttention(query, key, at::ones({keys, 2}), {.causal = causal});
      EXPECT_TRUE(result.isfinite().all().item<bool>());
    }
  }
}

TEST(TaylorAttention, DoesNotDependOnTheLengthsOfQueriesAndKeys) {
  const at::Tensor query = at::randn({4, 5});
  const at::Tensor key = at::randn({6, 5});
  const at::Tensor value = at::randn({6, 2});
  EXPECT_LT(LargestDifference(TaylorAttention(query, key, value, {}),
                              TaylorAttention(query * 1e-3, key * 1e4, value, {})),
            1e-5);
}

TEST(TaylorAttention, GoesOnFromTheStateOfTheRowsBefore) {
  const at::Tensor query = at::randn({150, 5});
  const at::Tensor key = at::randn({150, 5});
  const at::Tensor value = at::randn({150, 2});
  FeatureState state;
  ContinueFeatureAttention(query.narrow(0, 0, 60), key.narrow(0, 0, 60), value.narrow(0, 0, 60), {},
                           TaylorForm(), state);
  const at::Tensor rest =
      ContinueFeatureAttention(query.narrow(0, 60, 90), key.narrow(0, 60, 90),
                               value.narrow(0, 60, 90), {}, TaylorForm(), state);
  EXPECT_LT(LargestDifference(
                rest, TaylorAttention(query, key, value, {.causal = true}).narrow(0, 60, 90)),
            1e-5);
}

}  // namespace
}  // namespace linserve
