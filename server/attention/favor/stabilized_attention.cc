#include "attention/favor/stabilized_attention.h"

#include <algorithm>
#include <limits>

#include "attention/linear/causal_linear_attention.h"
#include "attention/products/kernel_rows.h"
#include "attention/rows/aten.h"

namespace linserve {
namespace {

constexpr float kNoKey = std::numeric_limits<float>::lowest();

RowBlock OfHead(const at::Tensor& tensor, int64_t head) {
  return {tensor.mutable_data_ptr<float>() + head * tensor.stride(0), tensor.stride(1)};
}

// Divides each row by its divisor, which is overwritten.
void DivideRows(const RowBlock& rows, int64_t count, int64_t width, float* divisors) {
  for (int64_t i = 0; i < count; ++i) divisors[i] = 1 / divisors[i];
  ScaleRows(rows, count, width, divisors);
}

}  // namespace

StabilizedAttention::StabilizedAttention(int64_t heads, int64_t dim_head,
                                         const StabilizedFeatures& features, double added)
    : heads_(heads),
      dim_head_(dim_head),
      features_(features),
      added_(added),
      context_(at::empty({heads, features.features(), dim_head}, at::kFloat)),
      total_(at::empty({heads, features.features(), 1}, at::kFloat)),
      values_(at::empty({heads, 1, dim_head}, at::kFloat)) {}

void StabilizedAttention::Begin() {
  rows_ = 0;
  context_.zero_();
  total_.zero_();
  values_.zero_();
  most_.assign(static_cast<size_t>(heads_), kNoKey);
}

void StabilizedAttention::Add(const RowBlock& keys, const RowBlock& values, int64_t count) {
  const int64_t scratch_elements =
      features_.features() * kTransposedStride + kBlockRows + features_.TurnedElements();
  ForSideBySide(0, heads_, scratch_elements, [&](int64_t head, float* scratch) {
    const int64_t column = head * dim_head_;
    for (int64_t row = 0; row < count; row += kBlockRows) {
      AddHead(head, keys.Rows(row).Columns(column), values.Rows(row).Columns(column),
              std::min(kBlockRows, count - row), scratch);
    }
  });
  rows_ += count;
}

void StabilizedAttention::AddHead(int64_t head, const RowBlock& keys, const RowBlock& values,
                                  int64_t count, float* scratch) {
  const int64_t features = features_.features();
  const RowBlock weights{scratch, kTransposedStride};
  float* offsets = weights.Rows(features).data;
  const RowBlock context = OfHead(context_, head);
  float* total = OfHead(total_, head).data;
  features_.SetDirections(keys, count, weights, offsets, offsets + kBlockRows);
  const float& most = most_[static_cast<size_t>(head)];
  if (features_.is_positive()) {
    Shift(head, std::max(most, StabilizedFeatures::Largest(weights, features, count)));
    AddRowSums(values, count, dim_head_, OfHead(values_, head).data);
  }
  // What eps adds to sums that are shifted yet is added at the end.
  features_.SetKeys(weights, count, offsets, most, features_.is_positive() ? 0 : features_.eps());
  BlockProduct(features, dim_head_, count, weights, values, context, /*add=*/true);
  AddSums(weights, features, count, total);
}

void StabilizedAttention::Shift(int64_t head, float largest) {
  float& most = most_[static_cast<size_t>(head)];
  if (largest <= most) return;
  const at::Tensor factor = at::scalar_tensor(most - largest, at::kFloat).exp_();
  context_[head].mul_(factor);
  total_[head].mul_(factor);
  most = largest;
}

void StabilizedAttention::Finish() {
  if (features_.heads_share_shift()) {
    const float largest = *std::max_element(most_.begin(), most_.end());
    for (int64_t head = 0; head < heads_; ++head) Shift(head, largest);
  }
  if (features_.is_positive()) {
    context_.add_(values_, features_.eps());
    total_.add_(features_.eps() * static_cast<double>(rows_));
  }
  total_.add_(added_ / features_.ratio());
}

int64_t StabilizedAttention::ScratchElements() const {
  return kBlockRows * (features_.features() + 2);
}

void StabilizedAttention::Attend(const RowBlock& queries, int64_t count, const RowBlock& out,
                                 float* scratch) const {
  const int64_t features = features_.features();
  const RowBlock weights{scratch, features};
  float* offsets = weights.Rows(kBlockRows).data;
  float* divisors = offsets + kBlockRows;
  for (int64_t head = 0; head < heads_; ++head) {
    const RowBlock result = out.Columns(head * dim_head_);
    features_.SetQueries(queries.Columns(head * dim_head_), count, weights, offsets);
    BlockProduct(count, dim_head_, features, weights, OfHead(context_, head), result,
                 /*add=*/false);
    std::fill_n(divisors, count, 0.0F);
    AddDots(weights, count, features, OfHead(total_, head).data, divisors);
    DivideRows(result, count, dim_head_, divisors);
  }
}

StabilizedCausalAttention::StabilizedCausalAttention(int64_t heads, int64_t dim_head,
                                                     const StabilizedFeatures& features,
                                                     double added)
    : heads_(heads),
      dim_head_(dim_head),
      features_(features),
      added_(added),
      context_(at::empty({heads, features.features(), dim_head}, at::kFloat)),
      total_(at::empty({heads, features.features(), 1}, at::kFloat)) {}

void StabilizedCausalAttention::Begin() {
  context_.zero_();
  total_.fill_(added_ / features_.ratio());
  most_.assign(static_cast<size_t>(heads_), kNoKey);
}

void StabilizedCausalAttention::LookAhead(const RowBlock& keys, int64_t count) {
  const int64_t features = features_.features();
  const int64_t scratch_elements =
      features * kTransposedStride + kBlockRows + features_.TurnedElements();
  ForSideBySide(0, heads_, scratch_elements, [&](int64_t head, float* scratch) {
    const RowBlock directions{scratch, kTransposedStride};
    float* offsets = directions.Rows(features).data;
    float& most = most_[static_cast<size_t>(head)];
    for (int64_t row = 0; row < count; row += kBlockRows) {
      const int64_t some = std::min(kBlockRows, count - row);
      features_.SetDirections(keys.Rows(row).Columns(head * dim_head_), some, directions, offsets,
                              offsets + kBlockRows);
      most = std::max(most, StabilizedFeatures::Largest(directions, features, some));
    }
  });
}

void StabilizedCausalAttention::Attend(const RowBlock& queries, const RowBlock& keys,
                                       const RowBlock& values, int64_t count) {
  if (features_.heads_share_shift()) {
    most_.assign(most_.size(), *std::max_element(most_.begin(), most_.end()));
  }
  const int64_t features = features_.features();
  const int64_t scratch_elements = features * (kTransposedStride + kCausalBlock) +
                                   features_.TurnedElements() +
                                   kCausalBlock * (kTransposedStride + dim_head_) + 2 * kBlockRows;
  ForSideBySide(0, heads_, scratch_elements, [&](int64_t head, float* scratch) {
    const int64_t column = head * dim_head_;
    for (int64_t row = 0; row < count; row += kCausalBlock) {
      AttendHead(head, queries.Rows(row).Columns(column), keys.Rows(row).Columns(column),
                 values.Rows(row).Columns(column), std::min(kCausalBlock, count - row), scratch);
    }
  });
}

void StabilizedCausalAttention::AttendHead(int64_t head, const RowBlock& queries,
                                           const RowBlock& keys, const RowBlock& values,
                                           int64_t count, float* scratch) {
  const int64_t features = features_.features();
  const RowBlock of_keys{scratch, kTransposedStride};  // [features, count]
  const RowBlock of_queries{of_keys.Rows(features).data, features};
  const RowBlock scores{of_queries.Rows(kCausalBlock).data, kTransposedStride};
  const RowBlock result{scores.Rows(kCausalBlock).data, dim_head_};
  float* offsets = result.Rows(kCausalBlock).data;
  float* divisors = offsets + kBlockRows;
  const RowBlock context = OfHead(context_, head);
  float* total = OfHead(total_, head).data;

  features_.SetDirections(keys, count, of_keys, offsets, divisors + kBlockRows);
  features_.SetKeys(of_keys, count, offsets, most_[static_cast<size_t>(head)], features_.eps());
  features_.SetQueries(queries, count, of_queries, offsets);
  BlockProduct(count, WholeKernelRows(count), features, of_queries, of_keys, scores,
               /*add=*/false);
  LowerTriangle(scores, count, divisors);
  AddDots(of_queries, count, features, total, divisors);
  BlockProduct(count, dim_head_, count, scores, values, result, /*add=*/false);
  BlockProduct(count, dim_head_, features, of_queries, context, result, /*add=*/true);
  DivideRows(result, count, dim_head_, divisors);
  BlockProduct(features, dim_head_, count, of_keys, values, context, /*add=*/true);
  AddSums(of_keys, features, count, total);
  for (int64_t i = 0; i < count; ++i) {
    std::copy_n(result.Rows(i).data, dim_head_, queries.Rows(i).data);
  }
}

}  // namespace linserve
