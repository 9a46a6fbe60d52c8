#include "attention/blocks/block_linear_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "attention/linear/causal_linear_attention.h"
#include "attention/products/softmax_rows.h"
#include "attention/rows/aten.h"

namespace linserve {
namespace {

float* Row(const at::Tensor& tensor, int64_t i) { return BlockOf(tensor, i).data; }

RowBlock Matrix(const at::Tensor& tensor, int64_t i) {
  return {tensor.mutable_data_ptr<float>() + i * tensor.stride(0), tensor.stride(1)};
}

// Replaces each head's features by their softmax times `scale`.
void SoftmaxHeads(const RowBlock& rows, int64_t count, int64_t heads, int64_t dim_head, float scale,
                  float* shares) {
  for (int64_t head = 0; head < heads; ++head) {
    const RowBlock own = rows.Columns(head * dim_head);
    SoftmaxWeights(own, count, dim_head, 1, shares);
    for (int64_t i = 0; i < count; ++i) shares[i] *= scale;
    ScaleRows(own, count, dim_head, shares);
  }
}

at::Tensor AsTensor(const RowBlock& rows, int64_t count, int64_t heads, int64_t dim_head) {
  return at::from_blob(rows.data, {heads, count, dim_head}, {dim_head, rows.stride, 1});
}

}  // namespace

BlockLinearAttention::BlockLinearAttention(const Sizes& sizes, double factor)
    : sizes_(sizes), factor_(factor) {
  if (sizes_.value_width == 0) sizes_.value_width = sizes.dim_head;
  context_ = at::empty({sizes.heads, sizes.dim_head, sizes_.value_width}, at::kFloat);
  most_ = at::empty({sizes.heads, sizes.dim_head}, at::kFloat);
  sums_ = at::empty_like(most_);
  factors_ = at::empty_like(most_);
}

void BlockLinearAttention::Begin() {
  context_.zero_();
  sums_.zero_();
  most_.fill_(std::numeric_limits<float>::lowest());
}

void BlockLinearAttention::Add(const RowBlock& keys, const RowBlock& values, int64_t count) {
  if (!weights_.defined() || weights_.size(2) < count) {
    weights_ = at::empty({sizes_.heads, sizes_.dim_head, OddLines(count)}, at::kFloat);
  }
  ForSideBySide(0, sizes_.heads, 0, [&](int64_t head, float*) {
    const RowBlock own = keys.Columns(head * sizes_.dim_head);
    const RowBlock context = Matrix(context_, head);
    ColumnWeights(own, count, sizes_.dim_head, Row(most_, head), Row(factors_, head),
                  Row(sums_, head));
    ScaleRows(context, sizes_.dim_head, sizes_.value_width, Row(factors_, head));
    Transpose(own, count, sizes_.dim_head, Matrix(weights_, head));
    BlockProduct(sizes_.dim_head, sizes_.value_width, count, Matrix(weights_, head),
                 values.Columns(head * sizes_.value_width), context, /*add=*/true);
  });
}

void BlockLinearAttention::Finish() {
  const double scale = factor_ / std::sqrt(static_cast<double>(sizes_.dim_head));
  context_.mul_(scale).div_(sums_.unsqueeze(-1));
}

int64_t BlockLinearAttention::ScratchElements() const { return kBlockRows; }

void BlockLinearAttention::Attend(const RowBlock& queries, int64_t count, const RowBlock& out,
                                  float* scratch) const {
  if (sizes_.softmax_queries) {
    SoftmaxHeads(queries, count, sizes_.heads, sizes_.dim_head, 1, scratch);
  }
  for (int64_t head = 0; head < sizes_.heads; ++head) {
    BlockProduct(count, sizes_.value_width, sizes_.dim_head,
                 queries.Columns(head * sizes_.dim_head), Matrix(context_, head),
                 out.Columns(head * sizes_.value_width), /*add=*/false);
  }
}

BlockCausalAttention::BlockCausalAttention(int64_t heads, int64_t dim_head,
                                           const CausalDivisor& divisor, int64_t bucket)
    : heads_(heads), dim_head_(dim_head), divisor_(divisor), bucket_(bucket) {}

bool BlockCausalAttention::FitsF32(const RowBlock& keys, int64_t count) const {
  if (state_.context.defined() &&
      (state_.context.scalar_type() != at::kFloat || state_.shift.max().item<float>() > 0)) {
    return false;
  }
  const at::Tensor all = AsTensor(keys, count, heads_, dim_head_);
  return all.max().item<float>() <= kLargestExponent;
}

void BlockCausalAttention::Attend(const RowBlock& queries, const RowBlock& keys,
                                  const RowBlock& values, int64_t count) {
  if (!FitsF32(keys, count)) return AttendInF64(queries, keys, values, count);
  if (!state_.context.defined()) {
    state_.context = at::zeros({heads_, dim_head_, dim_head_}, at::kFloat);
    state_.total = at::zeros({heads_, 1, dim_head_}, at::kFloat);
    state_.shift = at::zeros({heads_, 1, 1}, at::kFloat);
  }
  const int64_t scratch_elements =
      (kCausalBlock + dim_head_) * OddLines(kCausalBlock) + kCausalBlock * (dim_head_ + 1);
  ForSideBySide(0, heads_, scratch_elements, [&](int64_t head, float* scratch) {
    const int64_t column = head * dim_head_;
    for (int64_t row = 0; row < count; row += kCausalBlock) {
      AttendHead(head, queries.Rows(row).Columns(column), keys.Rows(row).Columns(column),
                 values.Rows(row).Columns(column), std::min(kCausalBlock, count - row), scratch);
    }
  });
}

void BlockCausalAttention::AttendInF64(const RowBlock& queries, const RowBlock& keys,
                                       const RowBlock& values, int64_t count) {
  const at::Tensor q = AsTensor(queries, count, heads_, dim_head_);
  CausalLinearAttention(q, AsTensor(keys, count, heads_, dim_head_),
                        AsTensor(values, count, heads_, dim_head_), {}, bucket_, state_, q,
                        divisor_);
}

void BlockCausalAttention::AttendHead(int64_t head, const RowBlock& queries, const RowBlock& keys,
                                      const RowBlock& values, int64_t count, float* scratch) {
  const RowBlock scores{scratch, OddLines(kCausalBlock)};
  const RowBlock weights = scores.Rows(kCausalBlock);  // κᵀ [dim_head, count]
  const RowBlock result{weights.Rows(dim_head_).data, dim_head_};
  float* divisors = result.Rows(kCausalBlock).data;
  const RowBlock context = Matrix(state_.context, head);
  float* total = Matrix(state_.total, head).data;

  const float scale = 1 / std::sqrt(static_cast<float>(dim_head_));
  const float added = static_cast<float>(divisor_.added) * scale;
  SoftmaxHeads(queries, count, 1, dim_head_, scale, divisors);
  ExpRows(keys, count, dim_head_);
  Transpose(keys, count, dim_head_, weights);
  BlockProduct(count, count, dim_head_, queries, weights, scores, /*add=*/false);
  LowerTriangle(scores, count, divisors, bucket_);
  AddDots(queries, count, dim_head_, total, divisors);
  for (int64_t i = 0; i < count; ++i) {
    divisors[i] = 1 / (std::max(divisors[i], static_cast<float>(divisor_.floor)) + added);
  }
  BlockProduct(count, dim_head_, count, scores, values, result, /*add=*/false);
  BlockProduct(count, dim_head_, dim_head_, queries, context, result, /*add=*/true);
  ScaleRows(result, count, dim_head_, divisors);
  BlockProduct(dim_head_, dim_head_, count, weights, values, context, /*add=*/true);
  AddRowSums(keys, count, dim_head_, total);
  for (int64_t i = 0; i < count; ++i) {
    std::copy_n(result.Rows(i).data, dim_head_, queries.Rows(i).data);
  }
}

}  // namespace linserve
