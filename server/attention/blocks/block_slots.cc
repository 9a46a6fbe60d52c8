#include "attention/blocks/block_slots.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "attention/products/amx_product.h"
#include "attention/products/block_product.h"
#include "attention/products/kernel_rows.h"
#include "attention/products/softmax_rows.h"
#include "attention/rows/aten.h"

namespace linserve {
namespace {

// Sums over rows are of a multiple of so many of them, with zeros at a sequence's end: a kernel is
// made for each number.
constexpr int64_t kRowsStep = 32;

constexpr int64_t Even(int64_t number) { return RoundUp(number, 2); }

at::Tensor EmptyBf16(int64_t rows, int64_t columns) {
  return at::empty({rows, columns}, at::kBFloat16);
}

Bf16Block Bf16Of(const at::Tensor& rows) {
  return {rows.mutable_data_ptr<c10::BFloat16>(), rows.stride(0)};
}

}  // namespace

LengthWeights::LengthWeights(const at::Tensor& matrices, at::Tensor bias, DType products,
                             int64_t most_packed)
    : rounded_(products != DType::kF32 && Bf16KernelsPay()),
      matrices_(matrices.size(0)),
      slots_(matrices.size(1)),
      length_(matrices.size(2)),
      bias_(std::move(bias)) {
  if (matrices.numel() > most_packed) {
    as_loaded_ = matrices;
    return;
  }
  if (rounded_) {
    const int64_t blocks = (length_ + kBlockRows - 1) / kBlockRows;
    blocks_ =
        at::zeros({matrices_ * blocks * slots_ + kFewestKernelRows, kBlockRows}, at::kBFloat16);
  } else {
    blocks_ = at::empty({matrices.numel()}, at::kFloat);
  }
  for (int64_t matrix = 0; matrix < matrices_; ++matrix) {
    for (int64_t row = 0; row < length_; row += kBlockRows) {
      const int64_t count = std::min(kBlockRows, length_ - row);
      const at::Tensor block = rounded_
                                   ? at::from_blob(PackedRounded(matrix, row).data, {slots_, count},
                                                   {kBlockRows, 1}, at::kBFloat16)
                                   : at::from_blob(Packed(matrix, row).data, {slots_, count});
      block.copy_(matrices.select(0, matrix).narrow(1, row, count));
    }
  }
}

LengthWeights LengthWeights::WithBias(const at::Tensor& bias) const {
  LengthWeights other = *this;
  other.bias_ = bias;
  return other;
}

RowBlock LengthWeights::Block(int64_t matrix, int64_t row, int64_t slot, int64_t count,
                              float* scratch) const {
  return blocks_.defined() ? Packed(matrix, row).Rows(slot)
                           : Copy(matrix, row, slot, count, scratch);
}

Bf16Block LengthWeights::RoundedBlock(int64_t matrix, int64_t row, int64_t slot, int64_t count,
                                      float* scratch) const {
  if (blocks_.defined()) return PackedRounded(matrix, row).Rows(slot);
  const RowBlock copy = Copy(matrix, row, slot, count, scratch);
  const Bf16Block block{reinterpret_cast<c10::BFloat16*>(scratch + kBlockRows * kBlockRows),
                        kBlockRows};
  ToBf16(copy, count, copy.stride, block);
  for (int64_t i = 0; i < count; ++i) {
    std::fill(block.Rows(i).data + copy.stride, block.Rows(i + 1).data, c10::BFloat16(0));
  }
  return block;
}

RowBlock LengthWeights::Copy(int64_t matrix, int64_t row, int64_t slot, int64_t count,
                             float* scratch) const {
  const int64_t rows = std::min(kBlockRows, length_ - row);
  at::from_blob(scratch, {count, rows})
      .copy_(as_loaded_.select(0, matrix).narrow(0, slot, count).narrow(1, row, rows));
  return {scratch, rows};
}

int64_t LengthWeights::ScratchElements() const {
  if (blocks_.defined()) return 0;
  const int64_t block = kBlockRows * kBlockRows;
  return rounded_ ? block + block / 2 : block;
}

RowBlock LengthWeights::Packed(int64_t matrix, int64_t row) const {
  return {blocks_.mutable_data_ptr<float>() + (matrix * length_ + row) * slots_,
          std::min(kBlockRows, length_ - row)};
}

Bf16Block LengthWeights::PackedRounded(int64_t matrix, int64_t row) const {
  const int64_t blocks = (length_ + kBlockRows - 1) / kBlockRows;
  return Bf16Of(blocks_).Rows((matrix * blocks + row / kBlockRows) * slots_);
}

BlockSlots::BlockSlots(const Sizes& sizes, bool shared)
    : sizes_(sizes),
      shared_(shared),
      keys_(at::empty({sizes.slots, sizes.kv_width()}, at::kFloat)),
      values_(shared ? keys_ : at::empty_like(keys_)),
      transposed_keys_(at::empty({sizes.kv_width(), OddLines(sizes.slots)}, at::kFloat)) {}

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

void BlockSlots::Set(const at::Tensor& keys, const at::Tensor& values) {
  keys_.copy_(keys);
  values_.copy_(values);
  rounded_ = false;
  LayOut();
}

void BlockSlots::Finish(const LengthWeights& e, const LengthWeights& f) {
  const auto add_bias = [&](const LengthWeights& projection, const at::Tensor& slots) {
    if (!projection.bias().defined()) return;
    slots.view({sizes_.slots, sizes_.kv_heads, sizes_.dim_head})
        .add_(projection.bias().t().unsqueeze(-1));
  };
  add_bias(e, keys_);
  if (!shared_) add_bias(f, values_);
  rounded_ = e.rounded() && f.rounded() && sizes_.dim_head % 2 == 0;
  LayOut();
}

void BlockSlots::LayOut() {
  const int64_t width = sizes_.kv_width();
  if (!rounded_) return Transpose(BlockOf(keys_), sizes_.slots, width, BlockOf(transposed_keys_));
  // A pair of a slot's features is 32 bits, which stay together.
  const int64_t stride = OddLines(sizes_.slots);
  const auto words = [](const Bf16Block& block) {
    return RowBlock{reinterpret_cast<float*>(block.data), block.stride / 2};
  };
  const int64_t slots = Even(sizes_.slots);
  key_pairs_ = EmptyBf16(width / 2, 2 * stride);
  value_pairs_ = EmptyBf16(slots / 2, 2 * width);
  const auto keys = [&](float* scratch) {
    const Bf16Block rounded{reinterpret_cast<c10::BFloat16*>(scratch), width};
    ToBf16(BlockOf(keys_), sizes_.slots, width, rounded);
    Transpose(words(rounded), sizes_.slots, width / 2, words(Bf16Of(key_pairs_)));
  };
  ForSideBySide(0, 2, sizes_.slots * width / 2, [&](int64_t which, float* scratch) {
    if (which == 0) return keys(scratch);
    ToBf16Pairs(BlockOf(values_), sizes_.slots, width, slots, Bf16Of(value_pairs_));
  });
}

void BlockSlots::Add(int64_t rows, int64_t width, int64_t scratch, const Fill& fill,
                     const std::vector<Sum>& sums) {
  slices_.ForEach(rows, width, scratch, fill,
                  [&](int64_t first, int64_t some, const RowBlock& source) {
                    if (sums.front().projection.rounded()) RoundSlice(some, width, source);
                    for (const Sum& sum : sums) AddSlice(sum, first, some, source);
                  });
}

void BlockSlots::RoundSlice(int64_t rows, int64_t width, const RowBlock& source) {
  const int64_t blocks = (rows + kBlockRows - 1) / kBlockRows;
  if (!source_pairs_.defined() || source_pairs_.size(0) < blocks * kBlockRows / 2 ||
      source_pairs_.size(1) != 2 * width) {
    source_pairs_ = EmptyBf16(blocks * kBlockRows / 2, 2 * width);
  }
  ForSideBySide(0, blocks, 0, [&](int64_t block, float*) {
    const int64_t row = block * kBlockRows;
    const int64_t count = std::min(kBlockRows, rows - row);
    ToBf16Pairs(source.Rows(row), count, width, RoundUp(count, kRowsStep),
                Bf16Of(source_pairs_).Rows(row / 2));
  });
}

void BlockSlots::AddSlice(const Sum& sum, int64_t first, int64_t rows,
                          const RowBlock& source) const {
  const LengthWeights& projection = sum.projection;
  const int64_t width = sum.sums.size(1);
  ForBlocks(sizes_.slots, projection.ScratchElements(),
            [&](int64_t begin, int64_t count, float* scratch) {
              const RowBlock sums = BlockOf(sum.sums, begin);
              for (int64_t row = 0; row < rows; row += kBlockRows) {
                const int64_t some = std::min(kBlockRows, rows - row);
                const bool add = first + row > 0;
                if (projection.rounded()) {
                  Bf16Product(
                      count, width, RoundUp(some, kRowsStep),
                      projection.RoundedBlock(sum.matrix, first + row, begin, count, scratch),
                      Bf16Of(source_pairs_).Rows(row / 2).Columns(2 * sum.column), sums, add);
                } else {
                  BlockProduct(count, width, some,
                               projection.Block(sum.matrix, first + row, begin, count, scratch),
                               source.Rows(row).Columns(sum.column), sums, add);
                }
              }
            });
}

int64_t BlockSlots::ScratchElements(const Sizes& sizes) {
  const int64_t rounded = sizes.heads * sizes.dim_head + Even(sizes.slots);
  return kBlockRows * (sizes.slots + 1 + (rounded + 1) / 2);
}

void BlockSlots::Attend(const RowBlock& queries, int64_t row, int64_t count, const RowBlock& out,
                        float* scratch) const {
  if (rounded_) return AttendInBf16(queries, row, count, out, scratch);
  const int64_t dim_head = sizes_.dim_head;
  const RowBlock scores{scratch, sizes_.slots};
  float* shares = scores.Rows(kBlockRows).data;
  for (int64_t head = 0; head < sizes_.heads; ++head) {
    const RowBlock result = out.Columns(head * dim_head);
    BlockProduct(count, sizes_.slots, dim_head, queries.Columns(head * dim_head),
                 BlockOf(transposed_keys_, kv_column(head)), scores, /*add=*/false);
    HideLater(row, count, scores);
    SoftmaxWeights(scores, count, sizes_.slots, scale(), shares);
    BlockProduct(count, dim_head, sizes_.slots, scores, BlockOf(values_).Columns(kv_column(head)),
                 result, /*add=*/false);
    ScaleRows(result, count, dim_head, shares);
  }
}

void BlockSlots::AttendInBf16(const RowBlock& queries, int64_t row, int64_t count,
                              const RowBlock& out, float* scratch) const {
  const int64_t dim_head = sizes_.dim_head;
  const int64_t inner = sizes_.heads * dim_head;
  const int64_t slots = Even(sizes_.slots);
  const RowBlock scores{scratch, sizes_.slots};
  float* shares = scores.Rows(kBlockRows).data;
  const Bf16Block rounded{reinterpret_cast<c10::BFloat16*>(shares + kBlockRows), inner};
  const Bf16Block weights{rounded.Rows(kBlockRows).data, slots};
  ToBf16(queries, count, inner, rounded);
  const AmxScope tiles;
  for (int64_t i = 0; i < count && slots > sizes_.slots; ++i) {
    weights.Rows(i).data[slots - 1] = 0;
  }
  for (int64_t head = 0; head < sizes_.heads; ++head) {
    const RowBlock result = out.Columns(head * dim_head);
    Bf16Product(count, sizes_.slots, dim_head, rounded.Columns(head * dim_head),
                Bf16Of(key_pairs_).Rows(kv_column(head) / 2), scores, /*add=*/false);
    HideLater(row, count, scores);
    SoftmaxWeights(scores, count, sizes_.slots, scale(), shares, weights);
    Bf16Product(count, dim_head, slots, weights, Bf16Of(value_pairs_).Columns(2 * kv_column(head)),
                result, /*add=*/false);
    ScaleRows(result, count, dim_head, shares);
  }
}

void BlockSlots::HideLater(int64_t row, int64_t count, const RowBlock& scores) const {
  constexpr float kHidden = -std::numeric_limits<float>::infinity();
  for (int64_t i = 0; sizes_.causal && i < count && row + i + 1 < sizes_.slots; ++i) {
    float* scores_of_row = scores.Rows(i).data;
    std::fill(scores_of_row + row + i + 1, scores_of_row + sizes_.slots, kHidden);
  }
}

float BlockSlots::scale() const { return 1.0F / std::sqrt(static_cast<float>(sizes_.dim_head)); }

}  // namespace linserve
