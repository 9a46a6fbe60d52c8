#include "attention/linformer/slot_attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "attention/layouts.h"
#include "attention/rows/spans.h"

namespace linserve {
namespace {

// AttendToOpenSlots() by its formula, in F64 and with all scores at once.
at::Tensor NaiveOpenSlots(const at::Tensor& queries, const at::Tensor& keys,
                          const at::Tensor& values, const OpenSlots& open) {
  const at::Tensor heads = SplitHeads(queries.to(at::kDouble), keys.size(1));
  at::Tensor scores = at::matmul(heads, keys.to(at::kDouble).transpose(-1, -2)) /
                      std::sqrt(static_cast<double>(keys.size(3)));
  for (int64_t i = 0; open.causal && i < scores.size(2); ++i) {
    for (int64_t slot = open.first + i + 1; slot < scores.size(3); ++slot) {
      scores.select(3, slot).select(2, i).fill_(-kInfinity);
    }
  }
  return JoinHeads(at::matmul(at::softmax(scores, -1), values.to(at::kDouble)));
}

TEST(AttendToOpenSlots, WeighsValuesByTheSoftmaxOfScaledScores) {
  const at::Tensor result =
      AttendToOpenSlots(Matrix({{1.5F, 0, 0, 0}}).unsqueeze(0),
                        Matrix({{1, 0, 0, 0}, {2, 0, 0, 0}}).view({1, 1, 2, 4}),
                        Matrix({{10, 0, 0, 0}, {20, 0, 0, 0}}).view({1, 1, 2, 4}), {});
  const double weight = 1 / (1 + std::exp((1.5 - 3.0) / 2));  // √4
  EXPECT_NEAR(result[0][0][0].item<float>(), 10 * (1 - weight) + 20 * weight, 1e-5);
}

TEST(AttendToOpenSlots, IsItsFormulaForAnyShape) {
  for (const auto& [length, slots] : {std::pair{1, 1}, {1, 9}, {7, 3}, {3, 7}, {70, 40}}) {
    for (const bool causal : {false, true}) {
      for (const int64_t first : {0, 2, 5, 100}) {
        const at::Tensor queries = at::randn({2, length, 6});
        const at::Tensor keys = at::randn({2, 3, slots, 2});
        const at::Tensor values = at::randn({2, 3, slots, 2});
        const OpenSlots open{causal, first};
        EXPECT_LT(LargestDifference(AttendToOpenSlots(queries, keys, values, open),
                                    NaiveOpenSlots(queries, keys, values, open)),
                  1e-5)
            << length << " " << slots << " " << causal << " " << first;
      }
    }
  }
}

TEST(AttendToOpenSlots, ShowsACausalQueryTheSlotsUpToItsOwnPosition) {
  // The result is the mean of the open slots' values, since the queries are zeros: 1, 2, 4.
  const at::Tensor keys = at::zeros({1, 1, 3, 1});
  const at::Tensor values = at::tensor({1.F, 2.F, 6.F}).view({1, 1, 3, 1});
  const at::Tensor queries = at::zeros({1, 5, 1});
  EXPECT_LT(LargestDifference(AttendToOpenSlots(queries, keys, values, {true, 0}).flatten(),
                              at::tensor({1.F, 1.5F, 3.F, 3.F, 3.F})),
            1e-6);
  EXPECT_LT(LargestDifference(AttendToOpenSlots(queries, keys, values, {true, 1}).flatten(),
                              at::tensor({1.5F, 3.F, 3.F, 3.F, 3.F})),
            1e-6);
}

TEST(AttendToOpenSlots, GivesPartsOfASequenceTheRowsOfTheWhole) {
  const at::Tensor queries = at::randn({1, 50, 8});
  const at::Tensor keys = at::randn({1, 2, 30, 4});
  const at::Tensor values = at::randn({1, 2, 30, 4});
  const at::Tensor whole = AttendToOpenSlots(queries, keys, values, {true, 0});
  for (int64_t row = 0; row < 50; row += 10) {
    const at::Tensor part =
        AttendToOpenSlots(queries.narrow(1, row, 10), keys, values, {true, row});
    EXPECT_LT(LargestDifference(part, whole.narrow(1, row, 10)), 1e-5) << row;
  }
}

TEST(AttendToOpenSlots, TakesQueriesThatLieApart) {
  const at::Tensor rows = at::randn({20, 12});
  const at::Tensor queries = rows.as_strided({2, 3, 4}, {120, 12, 1}, 5);
  const at::Tensor keys = at::randn({2, 2, 5, 2});
  EXPECT_LT(LargestDifference(AttendToOpenSlots(queries, keys, keys, {}),
                              AttendToOpenSlots(queries.contiguous(), keys, keys, {})),
            1e-6);
}

TEST(AttendToOpenSlots, StaysFiniteForScoresThatOverflowTheirExponential) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf}) {
    const at::Tensor queries = at::full({1, 2, 4}, 1e4F).to(type);
    const at::Tensor keys = at::tensor({1e4F, -1e4F}).view({1, 1, 2, 1}).repeat({1, 1, 1, 4});
    const at::Tensor values = at::tensor({3.0F, 5.0F}).view({1, 1, 2, 1}).repeat({1, 1, 1, 4});
    for (const bool causal : {false, true}) {
      const at::Tensor result =
          AttendToOpenSlots(queries, keys.to(type), values.to(type), {causal, 0});
      EXPECT_EQ(LargestDifference(result, at::full({1, 2, 4}, 3.0F)), 0);
    }
  }
}

TEST(AttendToOpenSlots, SharesItsWeightAmongKeysOfZeros) {
  const at::Tensor values = at::tensor({1.F, 3.F}).view({1, 1, 2, 1});
  const at::Tensor result =
      AttendToOpenSlots(at::full({1, 1, 1}, 1e4F), at::zeros({1, 1, 2, 1}), values, {});
  EXPECT_NEAR(result.item<float>(), 2, 1e-6);
}

}  // namespace
}  // namespace linserve
