#include "attention/linformer/softmax_attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "attention/naive_attention.h"
#include "attention/rows/aten.h"

namespace linserve {
namespace {

TEST(SoftmaxAttention, WeighsValuesByTheSoftmaxOfScaledScores) {
  // d = 4, so that scores are halved: (2·1)/2 = 1 and 0.
  const at::Tensor result = SoftmaxAttention(
      Matrix({{2, 0, 0, 0}}), Matrix({{1, 9, 9, 9}, {0, 9, 9, 9}}), Matrix({{10, 1}, {20, 2}}), {});
  const double weight = std::exp(1.0) / (std::exp(1.0) + 1);
  EXPECT_LT(LargestDifference(result, Matrix({{20 - 10 * weight, 2 - weight}})), 1e-5);
}

TEST(SoftmaxAttention, OfEqualScoresIsTheMeanOfTheVisibleValues) {
  const at::Tensor zeros = at::zeros({3, 2});
  const at::Tensor value = Matrix({{3}, {6}, {12}});
  EXPECT_LT(LargestDifference(SoftmaxAttention(zeros, zeros, value, {}), Matrix({{7}, {7}, {7}})),
            1e-6);
  EXPECT_LT(LargestDifference(SoftmaxAttention(zeros, zeros, value, {.causal = true}),
                              Matrix({{3}, {4.5}, {7}})),
            1e-6);
  const Visible masked{Mask({true, false, true})};
  EXPECT_LT(LargestDifference(SoftmaxAttention(zeros, zeros, value, masked),
                              Matrix({{7.5}, {7.5}, {7.5}})),
            1e-6);
  const Visible both{Mask({false, true, true}), true};
  EXPECT_LT(LargestDifference(SoftmaxAttention(zeros, zeros, value, both), Matrix({{0}, {6}, {9}})),
            1e-6);
}

TEST(SoftmaxAttention, CountsCausalKeysFromTheFirstOneIfThereAreFewerOrMoreThanQueries) {
  for (auto [queries, keys] : {std::pair{5, 3}, std::pair{3, 5}}) {
    const at::Tensor query = at::randn({queries, 4});
    const at::Tensor key = at::randn({keys, 4});
    const at::Tensor value = at::randn({keys, 2});
    EXPECT_LT(LargestDifference(SoftmaxAttention(query, key, value, {.causal = true}),
                                NaiveSoftmax(query, key, value, {.causal = true})),
              1e-5);
  }
}

TEST(SoftmaxAttention, OfLongMaskedCausalSequencesIsTheSameInBlocks) {
  const int64_t length = 2500;  // a mask of more elements than are made at once
  const at::Tensor query = at::randn({length, 4});
  const at::Tensor key = at::randn({length, 4});
  const at::Tensor value = at::randn({length, 4});
  const at::Tensor mask = at::rand({length}).gt(0.5);
  const at::Tensor result = SoftmaxAttention(query, key, value, {mask, true});
  for (int64_t row : {int64_t{0}, int64_t{1676}, int64_t{1677}, int64_t{1678}, length - 1}) {
    const int64_t seen = row + 1;
    EXPECT_LT(LargestDifference(
                  result.narrow(0, row, 1),
                  NaiveSoftmax(query.narrow(0, row, 1), key.narrow(0, 0, seen),
                               value.narrow(0, 0, seen), {.mask = mask.narrow(0, 0, seen)})),
              1e-5)
        << row;
  }
}

}  // namespace
}  // namespace linserve
