#include "attention/blocks/block_efficient_attention.h"

#include <algorithm>
#include <limits>

#include "attention/linear/causal_linear_attention.h"
#include "attention/products/block_product.h"
#include "attention/products/kernel_rows.h"
#include "attention/products/softmax_rows.h"
#include "attention/rows/aten.h"

namespace linserve {
namespace {

constexpr int64_t kTogetherStride = OddLines(kCausalBlock);
// Weights of e^-60, and products with their inverses, are normal numbers of F32.
constexpr float kMostGrowth = 60;

}  // namespace

struct BlockEfficientAttention::Head {
  RowBlock values;  // [dim_head, dim_head]
  float* most;
  float* weights;
  float* scratch;
};

BlockEfficientAttention::BlockEfficientAttention(int64_t heads, int64_t dim_head)
    : heads_(heads),
      dim_head_(dim_head),
      values_(at::empty({heads, dim_head, dim_head}, at::kFloat)),
      most_(at::empty({heads, dim_head}, at::kFloat)),
      weights_(at::empty_like(most_)) {}

void BlockEfficientAttention::Begin() {
  values_.zero_();
  weights_.zero_();
  most_.fill_(std::numeric_limits<float>::lowest());
}

void BlockEfficientAttention::Attend(const RowBlock& queries, const RowBlock& keys,
                                     const RowBlock& values, int64_t count) {
  const int64_t elements =
      kCausalBlock * (kTogetherStride + dim_head_ + 1) + dim_head_ * (kTogetherStride + 2);
  ForSideBySide(0, heads_, elements, [&](int64_t head, float* scratch) {
    const int64_t column = head * dim_head_;
    const Head own{{values_.mutable_data_ptr<float>() + column * dim_head_, dim_head_},
                   most_.mutable_data_ptr<float>() + column,
                   weights_.mutable_data_ptr<float>() + column,
                   scratch};
    for (int64_t row = 0; row < count; row += kCausalBlock) {
      AttendRows(own, queries.Rows(row).Columns(column), keys.Rows(row).Columns(column),
                 values.Rows(row).Columns(column), std::min(kCausalBlock, count - row));
    }
  });
}

bool BlockEfficientAttention::Grows(const Head& own, const RowBlock& keys, int64_t count) const {
  float growth = 0;
  for (int64_t i = 1; i < count; ++i) {
    const float* row = keys.Rows(i).data;
    for (int64_t j = 0; j < dim_head_; ++j) {
      growth = std::max(growth, row[j] - std::max(own.most[j], keys.data[j]));
    }
  }
  return growth > kMostGrowth;
}

void BlockEfficientAttention::AttendRows(const Head& own, const RowBlock& queries,
                                         const RowBlock& keys, const RowBlock& values,
                                         int64_t count) const {
  if (count > 1 && Grows(own, keys, count)) {
    const int64_t half = count / 2;
    AttendRows(own, queries, keys, values, half);
    return AttendRows(own, queries.Rows(half), keys.Rows(half), values.Rows(half), count - half);
  }
  const RowBlock scores{own.scratch, kTogetherStride};
  const RowBlock turned = scores.Rows(kCausalBlock);
  const RowBlock result{turned.Rows(dim_head_).data, dim_head_};
  float* shares = result.Rows(kCausalBlock).data;
  float* factors = shares + kCausalBlock;
  float* running = factors + dim_head_;
  std::copy_n(own.weights, dim_head_, running);
  ColumnWeights(keys, count, dim_head_, own.most, factors, own.weights);
  for (int64_t j = 0; j < dim_head_; ++j) running[j] *= factors[j];
  SoftmaxWeights(queries, count, dim_head_, 1, shares);
  for (int64_t i = 0; i < count; ++i) {
    float* query = queries.Rows(i).data;
    const float* weights = keys.Rows(i).data;
    for (int64_t j = 0; j < dim_head_; ++j) {
      running[j] += weights[j];
      query[j] *= shares[i] / running[j];
    }
  }
  ScaleRows(own.values, dim_head_, dim_head_, factors);
  Transpose(keys, count, dim_head_, turned);
  // What stands behind the keys gives columns that LowerTriangle() does not read.
  BlockProduct(count, WholeKernelRows(count), dim_head_, queries, turned, scores, /*add=*/false);
  LowerTriangle(scores, count, shares);
  BlockProduct(count, dim_head_, count, scores, values, result, /*add=*/false);
  BlockProduct(count, dim_head_, dim_head_, queries, own.values, result, /*add=*/true);
  BlockProduct(dim_head_, dim_head_, count, turned, values, own.values, /*add=*/true);
  for (int64_t i = 0; i < count; ++i) {
    std::copy_n(result.Rows(i).data, dim_head_, queries.Rows(i).data);
  }
}

}  // namespace linserve
