#include "attention/blocks/block_feature_attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "attention/blocks/block_features.h"
#include "attention/layouts.h"
#include "attention/linear/kernel_attention.h"
#include "attention/products/block_product.h"
#include "attention/rows/aten.h"

namespace linserve {
namespace {

constexpr int64_t kHeadsOfFeatures = 3;

// Views rows [n, heads · width] as heads [heads, n, width].
at::Tensor FeaturesByHead(const at::Tensor& rows) {
  return rows.view({rows.size(0), kHeadsOfFeatures, -1}).transpose(0, 1);
}

at::Tensor HeadsJoined(const at::Tensor& heads) { return heads.transpose(0, 1).flatten(1); }

// The formula in F64, for features [heads, n, features] and values [heads, n, value_width].
at::Tensor NaiveFeatureAttention(const at::Tensor& queries, const at::Tensor& keys,
                                 const at::Tensor& values, bool causal, double added,
                                 double floor) {
  at::Tensor weights = at::matmul(queries.to(at::kDouble), keys.to(at::kDouble).transpose(1, 2));
  if (causal) weights = weights.tril();
  const at::Tensor divisors = (weights.sum(-1, /*keepdim=*/true) + added).clamp_min(floor);
  return at::matmul(weights, values.to(at::kDouble)) / divisors;
}

// Computes it in blocks of these many rows, each of which is overwritten.
at::Tensor AttendByBlocks(const BlockFeatureAttention& attention, const at::Tensor& queries,
                          const at::Tensor& keys, const at::Tensor& values, int64_t rows,
                          bool causal) {
  const at::Tensor sums = at::zeros({attention.SumElements()});
  const at::Tensor scratch = at::full({attention.ScratchElements()}, std::nan(""));
  const at::Tensor out = values.clone();
  const int64_t length = queries.size(0);
  const auto for_blocks = [&](const auto& function) {
    for (int64_t row = 0; row < length; row += rows) {
      for (int64_t head = 0; head < kHeadsOfFeatures; ++head) {
        function(head, row, std::min(rows, length - row));
      }
    }
  };
  float* all = sums.mutable_data_ptr<float>();
  float* own = scratch.mutable_data_ptr<float>();
  if (causal) {
    for_blocks([&](int64_t head, int64_t row, int64_t count) {
      attention.AttendCausally(head, BlockOf(queries, row), BlockOf(keys, row), BlockOf(out, row),
                               count, all, own);
    });
    return out;
  }
  for_blocks([&](int64_t head, int64_t row, int64_t count) {
    attention.Add(head, BlockOf(keys, row), BlockOf(values, row), count, all, own);
  });
  for_blocks([&](int64_t head, int64_t row, int64_t count) {
    attention.Attend(head, BlockOf(queries, row), count, all, BlockOf(out, row), own);
  });
  return out;
}

TEST(BlockFeatureAttention, IsTheFormulaForSequencesOfAnyLengthInBlocksOfAny) {
  for (const bool causal : {false, true}) {
    for (const auto& [features, width] : {std::pair{5, 7}, {32, 16}, {17, 1}}) {
      const BlockFeatureAttention attention({.heads = kHeadsOfFeatures,
                                             .features = features,
                                             .value_width = width,
                                             .added = 0.1,
                                             .floor = 0.3});
      for (const int64_t length : {1, 2, 17, 64, 65, 128, 129, 300}) {
        const at::Tensor queries = at::rand({length, kHeadsOfFeatures * features});
        const at::Tensor keys = at::rand({length, kHeadsOfFeatures * features}) / length;
        const at::Tensor values = at::randn({length, kHeadsOfFeatures * width});
        const at::Tensor expected =
            HeadsJoined(NaiveFeatureAttention(FeaturesByHead(queries), FeaturesByHead(keys),
                                              FeaturesByHead(values), causal, 0.1, 0.3));
        for (const int64_t rows : {1, 50, 128}) {
          EXPECT_LT(LargestDifference(
                        AttendByBlocks(attention, queries, keys, values, rows, causal), expected),
                    1e-5)
              << length << " rows of " << features << " features, blocks of " << rows
              << (causal ? ", causal" : "");
        }
      }
    }
  }
}

TEST(BlockFeatureAttention, GivesZerosWhereNoKeyHasFeatures) {
  const BlockFeatureAttention attention(
      {.heads = kHeadsOfFeatures, .features = 4, .value_width = 4, .added = 1e-6});
  const at::Tensor queries = at::rand({20, 12});
  const at::Tensor values = at::randn({20, 12});
  for (const bool causal : {false, true}) {
    EXPECT_TRUE(
        at::equal(AttendByBlocks(attention, queries, at::zeros({20, 12}), values, 20, causal),
                  at::zeros({20, 12})));
  }
}

std::vector<RandomFeatures> FeatureMaps() {
  std::vector<RandomFeatures> maps;
  for (const auto map : {RandomFeatures::Map::kPositive, RandomFeatures::Map::kMirrored,
                         RandomFeatures::Map::kFourier, RandomFeatures::Map::kKernel}) {
    RandomFeatures features{.map = map, .scale = 0.6, .ratio = 0.3, .eps = 1e-3};
    features.projection = at::randn({9, 8});
    maps.push_back(features);
    features.constant = 2.5;
    maps.push_back(features);
  }
  for (int kernel = 0; kernel <= static_cast<int>(Activation::kIdentity); ++kernel) {
    RandomFeatures features{.map = RandomFeatures::Map::kKernel,
                            .kernel = static_cast<Activation>(kernel)};
    features.projection = at::randn({16, 8});
    maps.push_back(features);
  }
  return maps;
}

TEST(BlockFeatures, AreThoseOfTheirDescription) {
  for (const RandomFeatures& random : FeatureMaps()) {
    const BlockFeatures features(random);
    EXPECT_EQ(features.features(), random.features());
    for (const int64_t count : {1, 16, 75, 128}) {
      const at::Tensor rows = at::randn({count, kHeadsOfFeatures * 8});
      const at::Tensor out =
          at::full({count, kHeadsOfFeatures * features.features()}, std::nan(""));
      features.Set(BlockOf(rows), count, kHeadsOfFeatures, BlockOf(out));
      const at::Tensor expected = HeadsJoined(random.Of(FeaturesByHead(rows).to(at::kDouble)));
      const at::Tensor size = 1 + expected.abs();
      EXPECT_LT(LargestDifference(out / size, expected / size), 1e-5)
          << "map " << static_cast<int>(random.map) << ", kernel "
          << static_cast<int>(random.kernel);
    }
  }
}

TEST(BlockFeatures, OfEluAreNeverNegative) {
  const BlockFeatures features(8);
  const at::Tensor rows = at::randn({40, kHeadsOfFeatures * 8}) * 20;
  const at::Tensor out = at::empty_like(rows);
  features.Set(BlockOf(rows), 40, kHeadsOfFeatures, BlockOf(out));
  const at::Tensor expected = KernelForm(/*normalize=*/false).keys(rows.to(at::kDouble));
  EXPECT_LT(LargestDifference(out, expected), 1e-5);
  EXPECT_GE(out.min().item<float>(), 0);
}

}  // namespace
}  // namespace linserve
