#include "attention/blocks/block_slots.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "attention/blocks/block_product.h"
#include "attention/rows/aten.h"

namespace linserve {
LengthWeights::LengthWeights(const at::Tensor& matrices, at::Tensor bias, int64_t most_packed)
    : matrices_(matrices.size(0)),
      slots_(matrices.size(1)),
      length_(matrices.size(2)),
      bias_(std::move(bias)) {
  if (matrices.numel() > most_packed) {
    as_loaded_ = matrices;
    return;
  }
  blocks_ = at::empty({matrices.numel()}, at::kFloat);
  for (int64_t matrix = 0; matrix < matrices_; ++matrix) {
    for (int64_t row = 0; row < length_; row += kBlockRows) {
      const int64_t count = std::min(kBlockRows, length_ - row);
      at::from_blob(Packed(matrix, row).data, {slots_, count})
          .copy_(matrices.select(0, matrix).narrow(1, row, count));
    }
  }
}

RowBlock LengthWeights::Block(int64_t matrix, int64_t row, int64_t slot, int64_t count,
                              float* scratch) const {
  if (blocks_.defined()) return Packed(matrix, row).Rows(slot);
  const int64_t rows = std::min(kBlockRows, length_ - row);
  at::from_blob(scratch, {count, rows})
      .copy_(as_loaded_.select(0, matrix).narrow(0, slot, count).narrow(1, row, rows));
  return {scratch, rows};
}

int64_t LengthWeights::ScratchElements() const {
  return blocks_.defined() ? 0 : kBlockRows * kBlockRows;
}

RowBlock LengthWeights::Packed(int64_t matrix, int64_t row) const {
  return {blocks_.mutable_data_ptr<float>() + (matrix * length_ + row) * slots_,
          std::min(kBlockRows, length_ - row)};
}

BlockSlots::BlockSlots(const Sizes& sizes, bool shared)
    : sizes_(sizes),
      shared_(shared),
      keys_(at::empty({sizes.slots, sizes.kv_width()}, at::kFloat)),
      values_(shared ? keys_ : at::empty_like(keys_)),
      transposed_keys_(at::empty({sizes.kv_width(), sizes.slots}, at::kFloat)) {}

void BlockSlots::ProjectKeys(int64_t rows, const LengthWeights& e, const LengthWeights& f,
                             int64_t scratch, const Fill& fill) {
  const int64_t width = sizes_.kv_width();
  std::vector<Sum> sums;
  AddSums(e, 0, keys_, sums);
  if (!shared_) AddSums(f, width, values_, sums);
  Add(rows, shared_ ? width : 2 * width, scratch, fill, sums);
  Finish(e, f);
}

void BlockSlots::AddSums(const LengthWeights& projection, int64_t column, const at::Tensor& slots,
                         std::vector<Sum>& sums) const {
  if (projection.matrices() == 1) return sums.push_back({projection, 0, column, slots});
  for (int64_t head = 0; head < sizes_.kv_heads; ++head) {
    const int64_t first = head * sizes_.dim_head;
    sums.push_back({projection, head, column + first, slots.narrow(1, first, sizes_.dim_head)});
  }
}

void BlockSlots::ProjectSource(int64_t rows, int64_t width, const LengthWeights& e,
                               const LengthWeights& f, const Fill& fill, const Map& to_keys,
                               const Map& to_values) {
  const auto empty = [&] { return at::empty({sizes_.slots, width}, at::kFloat); };
  std::vector<Sum> sums;
  sums.push_back({e, 0, 0, empty()});
  if (!shared_ && !f.is_same(e)) sums.push_back({f, 0, 0, empty()});
  Add(rows, width, 0, fill, sums);
  ForBlocks(sizes_.slots, 0, [&](int64_t begin, int64_t count, float*) {
    to_keys(BlockOf(sums.front().sums, begin), count, BlockOf(keys_, begin));
    if (!shared_) to_values(BlockOf(sums.back().sums, begin), count, BlockOf(values_, begin));
  });
  Finish(e, f);
}

void BlockSlots::Finish(const LengthWeights& e, const LengthWeights& f) {
  const auto add_bias = [&](const LengthWeights& projection, const at::Tensor& slots) {
    if (!projection.bias().defined()) return;
    slots.view({sizes_.slots, sizes_.kv_heads, sizes_.dim_head})
        .add_(projection.bias().t().unsqueeze(-1));
  };
  add_bias(e, keys_);
  if (!shared_) add_bias(f, values_);
  transposed_keys_.copy_(keys_.t());
}

void BlockSlots::Add(int64_t rows, int64_t width, int64_t scratch, const Fill& fill,
                     const std::vector<Sum>& sums) {
  slices_.ForEach(rows, width, scratch, fill,
                  [&](int64_t first, int64_t some, const RowBlock& source) {
                    for (const Sum& sum : sums) AddSlice(sum, first, some, source);
                  });
}

void BlockSlots::AddSlice(const Sum& sum, int64_t first, int64_t rows,
                          const RowBlock& source) const {
  const RowBlock columns = source.Columns(sum.column);
  const LengthWeights& projection = sum.projection;
  ForBlocks(sizes_.slots, projection.ScratchElements(),
            [&](int64_t begin, int64_t count, float* scratch) {
              for (int64_t row = 0; row < rows; row += kBlockRows) {
                BlockProduct(count, sum.sums.size(1), std::min(kBlockRows, rows - row),
                             projection.Block(sum.matrix, first + row, begin, count, scratch),
                             columns.Rows(row), BlockOf(sum.sums, begin),
                             /*add=*/first + row > 0);
              }
            });
}

int64_t BlockSlots::ScratchElements() const { return kBlockRows * (sizes_.slots + 1); }

void BlockSlots::Attend(const RowBlock& queries, int64_t row, int64_t count, const RowBlock& out,
                        float* scratch) const {
  constexpr float kHidden = -std::numeric_limits<float>::infinity();
  const int64_t dim_head = sizes_.dim_head;
  const float scale = 1.0F / std::sqrt(static_cast<float>(dim_head));
  const RowBlock scores{scratch, sizes_.slots};
  float* shares = scores.Rows(kBlockRows).data;
  for (int64_t head = 0; head < sizes_.heads; ++head) {
    const int64_t column = head * dim_head;
    const int64_t kv_column = sizes_.kv_heads == 1 ? 0 : column;
    BlockProduct(count, sizes_.slots, dim_head, queries.Columns(column),
                 BlockOf(transposed_keys_, kv_column), scores, /*add=*/false);
    for (int64_t i = 0; sizes_.causal && i < count && row + i + 1 < sizes_.slots; ++i) {
      float* scores_of_row = scores.Rows(i).data;
      std::fill(scores_of_row + row + i + 1, scores_of_row + sizes_.slots, kHidden);
    }
    SoftmaxWeights(scores, count, sizes_.slots, scale, shares);
    BlockProduct(count, dim_head, sizes_.slots, scores, BlockOf(values_).Columns(kv_column),
                 out.Columns(column), /*add=*/false);
    ScaleRows(out.Columns(column), count, dim_head, shares);
  }
}

}  // namespace linserve
