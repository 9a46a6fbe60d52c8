#include "attention/favor/stabilized_attention.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "attention/layouts.h"
#include "attention/linear/feature_attention.h"
#include "attention/rows/aten.h"

namespace linserve {
namespace {

using Map = RandomFeatures::Map;

constexpr int64_t kFeatureHeads = 3;
constexpr int64_t kFeatureWidth = 8;
constexpr double kAdded = 1e-6;

RandomFeatures FeaturesOf(Map map, bool heads_share_shift = false) {
  RandomFeatures features;
  features.heads_share_shift = heads_share_shift;
  features.map = map;
  features.projection = at::randn({21, kFeatureWidth});
  features.scale = std::pow(kFeatureWidth, -0.25);
  features.ratio = std::pow(21, -0.5);
  features.eps = 1e-3;
  return features;
}

std::vector<RandomFeatures> KindsOfFeatures() {
  return {FeaturesOf(Map::kPositive), FeaturesOf(Map::kPositive, /*heads_share_shift=*/true),
          FeaturesOf(Map::kKernel)};
}

struct FeatureRows {
  at::Tensor queries, keys, values;  // [n, heads · width]

  explicit FeatureRows(int64_t rows)
      : queries(at::randn({rows, kFeatureHeads * kFeatureWidth})),
        keys(at::randn({rows, kFeatureHeads * kFeatureWidth}) * 2),
        values(at::randn({rows, kFeatureHeads * kFeatureWidth})) {}

  int64_t length() const { return queries.size(0); }
};

at::Tensor FeatureHeads(const at::Tensor& rows) {
  return rows.view({rows.size(0), kFeatureHeads, kFeatureWidth}).transpose(0, 1);
}

// Computes it by features of whole matrices.
at::Tensor Formula(const FeatureRows& rows, const RandomFeatures& features, bool causal) {
  const at::Tensor queries = features.OfShiftedRows(FeatureHeads(rows.queries));
  const at::Tensor keys =
      features.Of(FeatureHeads(rows.keys), features.Largest(FeatureHeads(rows.keys)));
  at::Tensor weights = at::matmul(queries, keys.transpose(-2, -1));
  if (causal) weights = weights.tril();
  const at::Tensor divisors =
      weights.sum(-1, /*keepdim=*/true) + kAdded * queries.sum(-1, /*keepdim=*/true);
  return (at::matmul(weights, FeatureHeads(rows.values)) / divisors)
      .transpose(0, 1)
      .reshape({rows.length(), -1});
}

// Computes it in slices of `slice` rows.
at::Tensor ByBlocks(const FeatureRows& rows, const StabilizedFeatures& features, int64_t slice) {
  const at::Tensor out = at::empty_like(rows.queries);
  StabilizedAttention attention(kFeatureHeads, kFeatureWidth, features, kAdded);
  attention.Begin();
  for (int64_t row = 0; row < rows.length(); row += slice) {
    attention.Add(BlockOf(rows.keys, row), BlockOf(rows.values, row),
                  std::min(slice, rows.length() - row));
  }
  attention.Finish();
  ForBlocks(rows.length(), attention.ScratchElements(),
            [&](int64_t row, int64_t count, float* scratch) {
              attention.Attend(BlockOf(rows.queries, row), count, BlockOf(out, row), scratch);
            });
  return out;
}

at::Tensor CausallyByBlocks(const FeatureRows& rows, const StabilizedFeatures& features,
                            int64_t slice) {
  const at::Tensor out = rows.queries.clone();
  StabilizedCausalAttention attention(kFeatureHeads, kFeatureWidth, features, kAdded);
  attention.Begin();
  const auto for_slices = [&](const auto& function) {
    for (int64_t row = 0; row < rows.length(); row += slice) {
      function(row, std::min(slice, rows.length() - row));
    }
  };
  if (attention.looks_ahead()) {
    for_slices(
        [&](int64_t row, int64_t count) { attention.LookAhead(BlockOf(rows.keys, row), count); });
  }
  for_slices([&](int64_t row, int64_t count) {
    attention.Attend(BlockOf(out, row), BlockOf(rows.keys, row), BlockOf(rows.values, row), count);
  });
  return out;
}

TEST(StabilizedAttention, IsTheFormulaInSlicesOfAnySize) {
  for (const RandomFeatures& features : KindsOfFeatures()) {
    const StabilizedFeatures block_features(features);
    for (const int64_t length : {1, 17, 300}) {
      const FeatureRows rows(length);
      const at::Tensor expected = Formula(rows, features, /*causal=*/false);
      for (const int64_t slice : {1, 50, 128, 300}) {
        EXPECT_LT(LargestDifference(ByBlocks(rows, block_features, slice), expected), 1e-5)
            << length << " rows, slices of " << slice;
      }
    }
  }
}

TEST(StabilizedCausalAttention, IsTheFormulaInSlicesOfAnySize) {
  for (const RandomFeatures& features : KindsOfFeatures()) {
    const StabilizedFeatures block_features(features);
    for (const int64_t length : {1, 17, 300}) {
      const FeatureRows rows(length);
      const at::Tensor expected = Formula(rows, features, /*causal=*/true);
      for (const int64_t slice : {1, 50, 128, 300}) {
        EXPECT_LT(LargestDifference(CausallyByBlocks(rows, block_features, slice), expected), 1e-5)
            << length << " rows, slices of " << slice;
      }
    }
  }
}

TEST(StabilizedAttention, HoldsKeysOfAnySize) {
  const RandomFeatures features = FeaturesOf(Map::kPositive);
  FeatureRows rows(40);
  rows.keys[30].mul_(50);  // what came before is nothing beside it, but for eps
  const at::Tensor out = ByBlocks(rows, StabilizedFeatures(features), 16);
  EXPECT_TRUE(out.isfinite().all().item<bool>());
  EXPECT_LT(LargestDifference(out, Formula(rows, features, /*causal=*/false)), 1e-4);
}

TEST(RandomFeatures, ShiftKeysByTheLargestOfTheirHeadOrOfAll) {
  const at::Tensor keys = at::randn({2, kFeatureHeads, 30, kFeatureWidth});  // of two sequences
  const RandomFeatures apart = FeaturesOf(Map::kPositive);
  RandomFeatures together = apart;
  together.heads_share_shift = true;
  const at::Tensor directions = at::matmul(keys * apart.scale, apart.projection.t());
  EXPECT_LT(LargestDifference(apart.Largest(keys), directions.amax({-2, -1}, /*keepdim=*/true)),
            1e-5);
  EXPECT_LT(
      LargestDifference(together.Largest(keys), directions.amax({-3, -2, -1}, /*keepdim=*/true)),
      1e-5);
}

TEST(RandomFeatures, OfQueriesAndKeysApproximateSoftmaxAttention) {
  at::manual_seed(5);
  RandomFeatures features = FeaturesOf(Map::kPositive);
  features.projection = at::randn({20'000, kFeatureWidth});
  features.eps = 0;
  const at::Tensor queries = at::randn({6, kFeatureWidth});
  const at::Tensor keys = at::randn({9, kFeatureWidth});
  const at::Tensor expected = at::softmax(
      at::matmul(queries, keys.t()) / std::sqrt(static_cast<double>(kFeatureWidth)), -1);
  for (const Map map : {Map::kPositive, Map::kMirrored}) {
    features.map = map;
    const at::Tensor weights = at::matmul(features.Of(queries), features.Of(keys).t());
    const at::Tensor shares = weights / weights.sum(-1, /*keepdim=*/true);
    EXPECT_LT(LargestDifference(shares, expected), 0.1);
  }
}

}  // namespace
}  // namespace linserve
