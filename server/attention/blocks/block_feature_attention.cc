#include "attention/blocks/block_feature_attention.h"

#include <algorithm>

#include "attention/linear/causal_linear_attention.h"
#include "attention/products/block_product.h"
#include "attention/products/kernel_rows.h"

namespace linserve {
namespace {

constexpr int64_t kCausalStride = OddLines(kCausalBlock);

}  // namespace

struct BlockFeatureAttention::Head {
  int64_t feature;  // the first column of its features
  int64_t value;    // and of its values
  RowBlock values;  // Σ φ(k_j)ᵀ v_j [features, value_width]
  float* weights;   // Σ φ(k_j) [features]
};

BlockFeatureAttention::Head BlockFeatureAttention::Of(int64_t head, float* sums) const {
  const int64_t size = sizes_.features * sizes_.value_width;
  return {head * sizes_.features,
          head * sizes_.value_width,
          {sums + head * size, sizes_.value_width},
          sums + sizes_.heads * size + head * sizes_.features};
}

int64_t BlockFeatureAttention::ScratchElements() const {
  const int64_t causal =
      kCausalBlock * (kCausalStride + sizes_.value_width + 1) + sizes_.features * kCausalStride;
  return std::max(sizes_.features * kTransposedStride, causal);
}

void BlockFeatureAttention::Add(int64_t head, const RowBlock& keys, const RowBlock& values,
                                int64_t count, float* sums, float* scratch) const {
  const Head own = Of(head, sums);
  for (int64_t row = 0; row < count; row += kBlockRows) {
    const int64_t some = std::min(kBlockRows, count - row);
    const RowBlock own_keys = keys.Rows(row).Columns(own.feature);
    const RowBlock turned{scratch, kTransposedStride};
    Transpose(own_keys, some, sizes_.features, turned);
    AddBlock(own, turned, own_keys, values.Rows(row).Columns(own.value), some);
  }
}

void BlockFeatureAttention::AddBlock(const Head& own, const RowBlock& turned, const RowBlock& keys,
                                     const RowBlock& values, int64_t count) const {
  BlockProduct(sizes_.features, sizes_.value_width, count, turned, values, own.values,
               /*add=*/true);
  AddRowSums(keys, count, sizes_.features, own.weights);
}

void BlockFeatureAttention::Attend(int64_t head, const RowBlock& queries, int64_t count,
                                   float* sums, const RowBlock& out, float* scratch) const {
  const Head own = Of(head, sums);
  const RowBlock own_queries = queries.Columns(own.feature);
  const RowBlock result = out.Columns(own.value);
  BlockProduct(count, sizes_.value_width, sizes_.features, own_queries, own.values, result,
               /*add=*/false);
  if (!sizes_.divided) return;
  std::fill_n(scratch, count, 0.0F);
  AddDots(own_queries, count, sizes_.features, own.weights, scratch);
  Divide(result, count, scratch);
}

void BlockFeatureAttention::AttendCausally(int64_t head, const RowBlock& queries,
                                           const RowBlock& keys, const RowBlock& values,
                                           int64_t count, float* sums, float* scratch) const {
  const Head own = Of(head, sums);
  for (int64_t row = 0; row < count; row += kCausalBlock) {
    AttendBlockCausally(own, queries.Rows(row).Columns(own.feature),
                        keys.Rows(row).Columns(own.feature), values.Rows(row).Columns(own.value),
                        std::min(kCausalBlock, count - row), scratch);
  }
}

void BlockFeatureAttention::AttendBlockCausally(const Head& own, const RowBlock& queries,
                                                const RowBlock& keys, const RowBlock& values,
                                                int64_t count, float* scratch) const {
  const int64_t width = sizes_.value_width;
  const RowBlock scores{scratch, kCausalStride};
  const RowBlock turned = scores.Rows(kCausalBlock);
  const RowBlock result{turned.Rows(sizes_.features).data, width};
  float* divisors = result.Rows(kCausalBlock).data;
  Transpose(keys, count, sizes_.features, turned);
  // What stands behind the keys gives columns that LowerTriangle() does not read.
  BlockProduct(count, WholeKernelRows(count), sizes_.features, queries, turned, scores,
               /*add=*/false);
  LowerTriangle(scores, count, divisors);
  AddDots(queries, count, sizes_.features, own.weights, divisors);
  BlockProduct(count, width, count, scores, values, result, /*add=*/false);
  BlockProduct(count, width, sizes_.features, queries, own.values, result, /*add=*/true);
  Divide(result, count, divisors);
  AddBlock(own, turned, keys, values, count);
  for (int64_t i = 0; i < count; ++i) {
    std::copy_n(result.Rows(i).data, width, values.Rows(i).data);
  }
}

void BlockFeatureAttention::Divide(const RowBlock& results, int64_t count, float* weights) const {
  if (!sizes_.divided) return;
  const auto added = static_cast<float>(sizes_.added);
  const auto floor = static_cast<float>(sizes_.floor);
  for (int64_t i = 0; i < count; ++i) weights[i] = 1.0F / std::max(weights[i] + added, floor);
  ScaleRows(results, count, sizes_.value_width, weights);
}

}  // namespace linserve
