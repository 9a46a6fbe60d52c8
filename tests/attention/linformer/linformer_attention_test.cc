#include "attention/linformer/linformer_attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "attention/layouts.h"
#include "attention/rows/aten.h"

namespace linserve {
namespace {

TEST(ProjectLength, SumsTheRowsOfEachSequenceByTheFirstRowsOfTheProjection) {
  const at::Tensor projection = Matrix({{1, 10}, {2, 20}, {3, 30}});
  const at::Tensor rows = Matrix({{1, 0}, {0, 1}, {5, 7}});
  const at::Tensor result = ProjectLength(rows, projection, Packed({2, 1}));
  // Sequence 0: slot s is P[0,s]·(1,0) + P[1,s]·(0,1); sequence 1: P[0,s]·(5,7).
  const at::Tensor expected = Matrix({{1, 2}, {10, 20}, {5, 7}, {50, 70}}).view({2, 2, 2});
  EXPECT_EQ(LargestDifference(result, expected), 0);
}

TEST(ProjectLength, IgnoresWhatLiesInThePadding) {
  const at::Tensor projection = at::randn({6, 3});
  const PlacedLayout packed = Packed({4, 1, 6});
  const PlacedLayout padded = Padded({4, 1, 6}, 6);
  const at::Tensor rows = at::randn({packed.rows, 5});
  EXPECT_LT(LargestDifference(ProjectLength(rows, projection, packed),
                              ProjectLength(Spread(rows, packed, padded), projection, padded)),
            1e-5);
}

TEST(AttendToSlots, OfOneSlotIsItsValue) {
  const at::Tensor queries = at::randn({3, 4});
  const at::Tensor values = Matrix({{1, 2, 3, 4}, {5, 6, 7, 8}}).view({2, 1, 4});
  const at::Tensor result = AttendToSlots(queries, at::randn({2, 1, 4}), values, 2, Packed({1, 2}));
  EXPECT_LT(LargestDifference(result, Matrix({{1, 2, 3, 4}, {5, 6, 7, 8}, {5, 6, 7, 8}})), 1e-6);
}

TEST(AttendToSlots, WeighsTheValuesByTheSoftmaxOfScaledScores) {
  const float query = 1.5f;
  const at::Tensor result =
      AttendToSlots(Matrix({{query}}), at::tensor({1.0f, 2.0f}).view({1, 2, 1}),
                    at::tensor({10.0f, 20.0f}).view({1, 2, 1}), 1, Packed({1}));
  const double weight = 1 / (1 + std::exp(query * 1.0 - query * 2.0));
  EXPECT_NEAR(result.item<float>(), 10 * (1 - weight) + 20 * weight, 1e-5);
}

TEST(AttendToSlots, LetsOneKeyHeadServeAllQueryHeads) {
  const int64_t heads = 3;
  const at::Tensor queries = at::randn({5, heads * 2});
  const at::Tensor keys = at::randn({1, 4, 2});
  const at::Tensor values = at::randn({1, 4, 2});
  const at::Tensor one = AttendToSlots(queries, keys, values, heads, Packed({5}));
  const at::Tensor repeated = AttendToSlots(queries, keys.repeat({1, 1, heads}),
                                            values.repeat({1, 1, heads}), heads, Packed({5}));
  EXPECT_LT(LargestDifference(one, repeated), 1e-6);
}

TEST(AttendToSlots, GivesPackedAndPaddedQueriesTheSameRows) {
  const PlacedLayout packed = Packed({4, 1, 6});
  const PlacedLayout padded = Padded({4, 1, 6}, 8);
  const at::Tensor queries = at::randn({packed.rows, 8});
  const at::Tensor keys = at::randn({3, 5, 8});
  const at::Tensor values = at::randn({3, 5, 8});
  const at::Tensor expected = AttendToSlots(queries, keys, values, 2, packed);
  const at::Tensor result = AttendToSlots(Spread(queries, packed, padded), keys, values, 2, padded);
  for (size_t i = 0; i < packed.starts.size(); ++i) {
    EXPECT_LT(LargestDifference(result.narrow(0, padded.starts[i], padded.lengths[i]),
                                expected.narrow(0, packed.starts[i], packed.lengths[i])),
              1e-6);
  }
}

TEST(AttendToSlots, ComputesLongSequencesInSlicesWithTheSameResult) {
  const int64_t length = 9000;  // more rows than are scored at once
  const at::Tensor queries = at::randn({length, 4});
  const at::Tensor keys = at::randn({1, 3, 4});
  const at::Tensor values = at::randn({1, 3, 4});
  const at::Tensor whole = AttendToSlots(queries, keys, values, 2, Packed({length}));
  for (int64_t row : {int64_t{0}, int64_t{4095}, int64_t{4096}, length - 1}) {
    const at::Tensor alone = AttendToSlots(queries.narrow(0, row, 1), keys, values, 2, Packed({1}));
    EXPECT_LT(LargestDifference(whole.narrow(0, row, 1), alone), 1e-6) << row;
  }
}

TEST(AttendToSlots, StaysFiniteForScoresThatOverflowTheirExponential) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const at::Tensor queries = at::full({2, 4}, 1e4f).to(type);
    const at::Tensor keys = at::tensor({1.0f, -1.0f}).view({1, 2, 1}).repeat({1, 1, 4}).to(type);
    const at::Tensor values = at::tensor({3.0f, 5.0f}).view({1, 2, 1}).repeat({1, 1, 4}).to(type);
    const at::Tensor result = AttendToSlots(queries, keys, values, 1, Packed({2}));
    EXPECT_EQ(LargestDifference(result, at::full({2, 4}, 3.0f)), 0);
  }
}

TEST(ComputedLayout, LetsPaddingTakePartOnlyWithZeros) {
  const PlacedLayout padded = Padded({4, 1}, 8);
  EXPECT_EQ(ComputedLayout(padded, Padding::kFixed).lengths, (std::vector<int64_t>{4, 1}));
  EXPECT_EQ(ComputedLayout(padded, Padding::kZeros).lengths, (std::vector<int64_t>{8, 8}));
}

}  // namespace
}  // namespace linserve
