#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "attention/layouts.h"
#include "attention/linformer/linformer_attention.h"
#include "attention/rows/aten.h"

namespace linserve {
namespace {

// Holds one sequence of two queries of width 1, and three slots.
struct Small {
  at::Tensor queries = Matrix({{1}, {2}});
  at::Tensor keys = Matrix({{0}, {1}, {-1}}).view({1, 3, 1});
  at::Tensor values = Matrix({{10}, {20}, {30}}).view({1, 3, 1});

  at::Tensor Attend(const at::Tensor& mask) const {
    return AttendToSlots(queries, keys, values, 1, Packed({2}), mask);
  }
  at::Tensor Weights(const at::Tensor& mask) const {
    return SlotWeights(queries, keys, 1, Packed({2}), mask);
  }
};

TEST(SlotMask, IsAddedToTheScores) {
  const at::Tensor mask = Matrix({{0.5, 0, 1}, {0, 0, 0}}).view({1, 1, 2, 3});
  const at::Tensor result = Small().Attend(mask);
  const double a = std::exp(0.5);  // scores 0 + 0.5, 1 + 0, -1 + 1
  const double b = std::exp(1.0);
  EXPECT_NEAR(result[0].item<float>(), (10 * a + 20 * b + 30) / (a + b + 1), 1e-5);
}

TEST(SlotMask, HidesASlotCompletely) {
  const at::Tensor mask =
      Matrix({{0, 0, -kInfinity}, {-kInfinity, -kInfinity, 0}}).view({1, 1, 2, 3});
  const at::Tensor result = Small().Attend(mask);
  const double share = std::exp(1.0) / (1 + std::exp(1.0));
  EXPECT_NEAR(result[0].item<float>(), 10 * (1 - share) + 20 * share, 1e-5);
  EXPECT_EQ(result[1].item<float>(), 30);
  EXPECT_EQ(Small().Weights(mask)[0][2].item<float>(), 0);
}

TEST(SlotMask, OfAQueryThatMayLookNowhereGivesZeros) {
  const at::Tensor mask = at::full({1, 1, 2, 3}, -kInfinity);
  mask.select(2, 0).zero_();
  const at::Tensor result = Small().Attend(mask);
  const at::Tensor open = Small().Attend({});
  EXPECT_EQ(LargestDifference(result[0], open[0]), 0);
  EXPECT_EQ(result[1].item<float>(), 0);
  EXPECT_EQ(LargestDifference(Small().Weights(mask)[1], at::zeros({3})), 0);
}

TEST(SlotMask, BelongsToItsSequenceAndHead) {
  const int64_t heads = 2;
  const PlacedLayout layout = Packed({3, 3});
  const at::Tensor queries = at::randn({6, 4});
  const at::Tensor keys = at::randn({2, 5, 4});
  const at::Tensor values = at::randn({2, 5, 4});
  const at::Tensor mask = at::randn({2, heads, 3, 5});
  const at::Tensor together = AttendToSlots(queries, keys, values, heads, layout, mask);
  for (int64_t i = 0; i < 2; ++i) {
    for (int64_t head = 0; head < heads; ++head) {
      const auto part = [&](const at::Tensor& all, int64_t axis) {
        return all.narrow(axis, head * 2, 2);
      };
      const at::Tensor alone = AttendToSlots(
          part(queries, 1).narrow(0, 3 * i, 3), part(keys, 2).narrow(0, i, 1),
          part(values, 2).narrow(0, i, 1), 1, Packed({3}), mask.narrow(0, i, 1).narrow(1, head, 1));
      EXPECT_LT(LargestDifference(part(together, 1).narrow(0, 3 * i, 3), alone), 1e-6);
    }
  }
}

TEST(SlotMask, IsCutLikeTheQueriesOfALongSequence) {
  const int64_t length = 9000;  // more rows than are scored at once
  const at::Tensor queries = at::randn({length, 4});
  const at::Tensor keys = at::randn({1, 3, 4});
  const at::Tensor values = at::randn({1, 3, 4});
  const at::Tensor mask = at::randn({1, 2, length, 3});
  const at::Tensor whole = AttendToSlots(queries, keys, values, 2, Packed({length}), mask);
  const at::Tensor weights = SlotWeights(queries, keys, 2, Packed({length}), mask);
  for (int64_t row : {int64_t{0}, int64_t{4095}, int64_t{4096}, length - 1}) {
    const at::Tensor query = queries.narrow(0, row, 1);
    const at::Tensor part = mask.narrow(2, row, 1);
    const at::Tensor alone = AttendToSlots(query, keys, values, 2, Packed({1}), part);
    EXPECT_LT(LargestDifference(whole.narrow(0, row, 1), alone), 1e-6) << row;
    EXPECT_LT(LargestDifference(weights.narrow(0, row, 1),
                                SlotWeights(query, keys, 2, Packed({1}), part)),
              1e-6);
  }
}

TEST(SlotMask, OfTheLargestNumbersLeavesTheWeightsFinite) {
  const float most = std::numeric_limits<float>::max();
  const at::Tensor mask = Matrix({{most, 0, -most}, {-most, -most, -most}}).view({1, 1, 2, 3});
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    Small small;
    small.queries = small.queries.to(type);
    small.keys = small.keys.to(type);
    small.values = small.values.to(type);
    const at::Tensor result = small.Attend(mask.to(type));
    EXPECT_EQ(result[0].item<float>(), 10);
    EXPECT_TRUE(at::isfinite(result).all().item<bool>());
    EXPECT_TRUE(at::isfinite(small.Weights(mask.to(type))).all().item<bool>());
  }
}

TEST(SlotWeights, AreTheSoftmaxAveragedOverTheHeads) {
  // Head 0 sees scores 0 and 2, head 1 scores 0 and 0.
  const at::Tensor weights =
      SlotWeights(Matrix({{1, 5}}), Matrix({{0, 0}, {2, 0}}).view({1, 2, 2}), 2, Packed({1}));
  const double second = (std::exp(2.0) / (1 + std::exp(2.0)) + 0.5) / 2;
  EXPECT_NEAR(weights[0][0].item<float>(), 1 - second, 1e-6);
  EXPECT_NEAR(weights[0][1].item<float>(), second, 1e-6);
}

TEST(SlotWeights, OfPackedAndPaddedQueriesAreTheSame) {
  const PlacedLayout packed = Packed({4, 4, 1, 6});
  const PlacedLayout padded = Padded({4, 4, 1, 6}, 8);
  const at::Tensor queries = at::randn({packed.rows, 8});
  const at::Tensor keys = at::randn({4, 20, 8});  // more slots than there are rows
  const at::Tensor expected = SlotWeights(queries, keys, 2, packed);
  const at::Tensor result = SlotWeights(Spread(queries, packed, padded), keys, 2, padded);
  for (size_t i = 0; i < packed.starts.size(); ++i) {
    EXPECT_LT(LargestDifference(result.narrow(0, padded.starts[i], padded.lengths[i]),
                                expected.narrow(0, packed.starts[i], packed.lengths[i])),
              1e-6);
  }
}

TEST(AttendToSlots, StaysFiniteForScoresThatFloat16CannotHold) {
  for (const at::ScalarType type : {at::kHalf, at::kBFloat16}) {
    const at::Tensor queries = at::full({2, 4}, 1e4f).to(type);
    const at::Tensor keys = at::tensor({1e4f, -1e4f}).view({1, 2, 1}).repeat({1, 1, 4}).to(type);
    const at::Tensor values = at::tensor({1e4f, 5.0f}).view({1, 2, 1}).repeat({1, 1, 4}).to(type);
    const at::Tensor result = AttendToSlots(queries, keys, values, 2, Packed({2}));
    EXPECT_EQ(LargestDifference(result, values[0][0].expand({2, 4})), 0);
  }
}

}  // namespace
}  // namespace linserve
