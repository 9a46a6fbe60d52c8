#include "attention/blocks/block_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "attention/products/amx_product.h"
#include "attention/products/bf16_product.h"
#include "attention/products/block_product.h"
#include "attention/products/kernel_rows.h"
#include "attention/products/softmax_rows.h"
#include "attention/rows/aten.h"
#include "attention/rows/slices.h"

namespace linserve {
namespace {

// Keys outside a window weigh nothing beside those that are hidden in it.
constexpr float kFar = 2 * BlockAttention::kHidden;

Bf16Block AsBf16(float* memory, int64_t stride) {
  return {reinterpret_cast<c10::BFloat16*>(memory), stride};
}

// A thread lays out so many blocks before others may get a turn.
constexpr int64_t kKeyBlocksOfThread = 4;

// Returns how many keys are best a block: no thread is to be without one.
int64_t BlockRowsOf(int64_t rows) {
  const int64_t threads = BlockThreads();
  return std::min(kBlockRows, WholeKernelRows((rows + threads - 1) / threads));
}

}  // namespace

// Holds a block of queries and the scratch for one head of them at a time.
struct BlockAttention::Tile {
  RowBlock queries;
  int64_t row;
  int64_t count;
  int64_t padded;   // rows that are multiplied
  RowBlock scores;  // [kBlockRows, kTransposedStride]
  RowBlock sums;    // of weighed values [kBlockRows, value_width]
  float* most;      // [kBlockRows] each
  float* factors;
  float* totals;
  float* rounded_weights;
  float* rounded_queries;
  float* relative;  // BlockRelativeScores::ScratchElements()
};

BlockAttention::BlockAttention(const Sizes& sizes)
    : sizes_(sizes),
      rounded_(sizes.products != DType::kF32 && Bf16KernelsPay() && sizes.dim_head % 2 == 0) {
  if (sizes_.value_width == 0) sizes_.value_width = sizes_.dim_head;
  if (sizes_.key_heads == 0) sizes_.key_heads = sizes_.heads;
  if (sizes_.scale == 0) sizes_.scale = 1 / std::sqrt(static_cast<double>(sizes_.dim_head));
}

at::Tensor BlockAttention::ScoresOfKeys(const at::Tensor& mask) {
  if (!mask.defined()) return {};
  const at::TensorOptions floats = mask.options().dtype(at::kFloat);
  return at::where(mask, at::scalar_tensor(0, floats), at::scalar_tensor(kHidden, floats));
}

int64_t BlockAttention::KeyElements(int64_t rows) const {
  const int64_t elements =
      sizes_.key_inner() * kTransposedStride + sizes_.value_inner() * WholeKernelRows(rows);
  return rounded_ ? elements / 2 : elements;
}

float* BlockAttention::ValuesIn(float* memory) const {
  return memory + sizes_.key_inner() * (rounded_ ? kTransposedStride / 2 : kTransposedStride);
}

void BlockAttention::LayOut(const RowBlock& keys, const RowBlock& values, int64_t count,
                            float* memory, float* scratch) const {
  const int64_t inner = sizes_.key_inner();
  const int64_t value_inner = sizes_.value_inner();
  // Weights of the rows that make the number whole are zeros, so what they weigh must be finite.
  const int64_t whole = WholeKernelRows(count);
  float* laid_values = ValuesIn(memory);
  if (rounded_) {
    // A pair of a key's features is moved as if it were one float.
    const Bf16Block rounded = AsBf16(scratch, inner);
    ToBf16(keys, count, inner, rounded);
    Transpose({scratch, inner / 2}, count, inner / 2, {memory, kTransposedStride});
    ToBf16Pairs(values, count, value_inner, whole, AsBf16(laid_values, 2 * value_inner));
    return;
  }
  Transpose(keys, count, inner, {memory, kTransposedStride});
  for (int64_t i = 0; i < count; ++i) {
    std::copy_n(values.Rows(i).data, value_inner, laid_values + i * value_inner);
  }
  std::fill(laid_values + count * value_inner, laid_values + whole * value_inner, 0.0F);
}

int64_t BlockAttention::ScratchElements() const {
  const int64_t rounded = rounded_ ? (kTransposedStride + sizes_.inner()) / 2 : 0;
  return kBlockRows * (kTransposedStride + sizes_.value_width + 3 + rounded) +
         (sizes_.relative ? BlockRelativeScores::ScratchElements() : 0);
}

void BlockAttention::Attend(const RowBlock& queries, int64_t row, int64_t count, const Keys& keys,
                            const Scores& scores, const RowBlock& out, float* scratch) const {
  const RowBlock scores_of_tile{scratch, kTransposedStride};
  const RowBlock sums{scores_of_tile.Rows(kBlockRows).data, sizes_.value_width};
  float* most = sums.Rows(kBlockRows).data;
  float* rounded = most + 3 * kBlockRows;
  const int64_t rounded_elements = kBlockRows * (kTransposedStride + sizes_.inner()) / 2;
  const Tile tile{.queries = queries,
                  .row = row,
                  .count = count,
                  .padded = WholeKernelRows(count),
                  .scores = scores_of_tile,
                  .sums = sums,
                  .most = most,
                  .factors = most + kBlockRows,
                  .totals = most + 2 * kBlockRows,
                  .rounded_weights = rounded,
                  .rounded_queries = rounded + kBlockRows * kTransposedStride / 2,
                  .relative = rounded + (rounded_ ? rounded_elements : 0)};
  if (rounded_) {
    ToBf16(queries, count, sizes_.inner(), AsBf16(tile.rounded_queries, sizes_.inner()));
  }
  std::optional<AmxScope> tiles;
  if (rounded_) tiles.emplace();
  for (int64_t head = 0; head < sizes_.heads; ++head) {
    AttendHead(head, tile, keys, scores);
    const RowBlock result = out.Columns(head * sizes_.value_width);
    for (int64_t i = 0; i < count; ++i) tile.factors[i] = 1.0F / tile.totals[i];
    ScaleRows(sums, count, sizes_.value_width, tile.factors, result);
  }
}

void BlockAttention::AttendHead(int64_t head, const Tile& tile, const Keys& keys,
                                const Scores& scores) const {
  std::fill_n(tile.most, tile.count, std::numeric_limits<float>::lowest());
  std::fill_n(tile.totals, tile.count, 0.0F);
  bool add = false;
  const auto take = [&](float* memory, int64_t count) {
    Weigh(tile, count);
    if (add) ScaleRows(tile.sums, tile.count, sizes_.value_width, tile.factors);
    AddValues(head, tile, memory, count, add);
    add = true;
  };
  const auto for_blocks = [&](const Keys& all, int64_t begin, int64_t end, const auto& score) {
    for (int64_t block = begin / all.block_rows; block * all.block_rows < end; ++block) {
      const int64_t row = block * all.block_rows;
      const int64_t count = std::min(all.block_rows, all.rows - row);
      float* memory = all.memory + block * KeyElements(all.block_rows);
      score(memory, row, count);
      take(memory, count);
    }
  };
  for_blocks(scores.others, 0, scores.others.rows, [&](float* memory, int64_t row, int64_t count) {
    Multiply(head, tile, memory, count);
    AddBias(tile.scores, tile.count, count, scores.of_others + row);
  });
  const int64_t begin = sizes_.before < 0 ? 0 : std::max<int64_t>(0, WindowBegin(tile.row));
  const int64_t end =
      sizes_.after < 0 ? keys.rows : std::min(keys.rows, WindowEnd(tile.row + tile.count - 1));
  for_blocks(keys, begin, end, [&](float* memory, int64_t row, int64_t count) {
    Score(head, tile, memory, row, count, scores);
  });
  if (sizes_.blank || (sizes_.before >= 0 && sizes_.after >= 0)) CorrectBlind(tile, keys);
}

void BlockAttention::CorrectBlind(const Tile& tile, const Keys& keys) const {
  const auto width = static_cast<float>(sizes_.before + sizes_.after + 1);
  for (int64_t i = 0; i < tile.count; ++i) {
    if (tile.most[i] > kHidden / 2) continue;
    const int64_t at = tile.row + i;
    const int64_t there =
        std::min(keys.rows, at + sizes_.after + 1) - std::max<int64_t>(0, at - sizes_.before);
    if (there > 0 && !sizes_.blank) {
      tile.totals[i] *= width / static_cast<float>(there);
    } else {
      tile.totals[i] = 1;
      std::fill_n(tile.sums.Rows(i).data, sizes_.value_width, 0.0F);
    }
  }
}

void BlockAttention::Multiply(int64_t head, const Tile& tile, float* memory, int64_t count) const {
  const int64_t column = head * sizes_.dim_head;
  const int64_t key_column = KeyHead(head) * sizes_.dim_head;
  const int64_t whole = WholeKernelRows(count);
  if (rounded_) {
    Bf16Product(tile.padded, whole, sizes_.dim_head,
                AsBf16(tile.rounded_queries, sizes_.inner()).Columns(column),
                AsBf16(memory, 2 * kTransposedStride).Rows(key_column / 2), tile.scores,
                /*add=*/false);
  } else {
    BlockProduct(tile.padded, whole, sizes_.dim_head, tile.queries.Columns(column),
                 RowBlock(memory, kTransposedStride).Rows(key_column), tile.scores, /*add=*/false);
  }
}

void BlockAttention::Score(int64_t head, const Tile& tile, float* memory, int64_t first,
                           int64_t count, const Scores& scores) const {
  Multiply(head, tile, memory, count);
  if (sizes_.cap > 0) {
    CapRows(tile.scores, tile.count, count, static_cast<float>(sizes_.scale),
            static_cast<float>(sizes_.cap));
  }
  if (scores.of_keys != nullptr) AddBias(tile.scores, tile.count, count, scores.of_keys + first);
  if (scores.of_distances != nullptr) {
    const float* of_head = scores.of_distances + head * scores.distances;
    for (int64_t i = 0; i < tile.count; ++i) {
      AddBias(tile.scores.Rows(i), 1, count, of_head + first - (tile.row + i));
    }
  }
  if (scores.relative != nullptr) AddRelative(head, tile, memory, first, count, scores);
  if (scores.of_queries != nullptr) {
    for (int64_t i = 0; i < tile.count; ++i) {
      if (scores.of_queries[tile.row + i] < 0)
        std::fill_n(tile.scores.Rows(i).data, count, kHidden);
    }
  }
  if (has_window()) HideFarKeys(tile, first, count);
}

void BlockAttention::AddRelative(int64_t head, const Tile& tile, float* memory, int64_t first,
                                 int64_t count, const Scores& scores) const {
  const BlockRelativeScores::Block block{head, tile.row, tile.count, first, count};
  const int64_t column = head * sizes_.dim_head;
  if (rounded_) {
    scores.relative->Add(block, AsBf16(tile.rounded_queries, sizes_.inner()).Columns(column),
                         AsBf16(memory, 2 * kTransposedStride).Rows(column / 2), scores.places,
                         tile.scores, tile.relative);
  } else {
    scores.relative->Add(block, tile.queries.Columns(column),
                         RowBlock(memory, kTransposedStride).Rows(column), scores.places,
                         tile.scores, tile.relative);
  }
}

void BlockAttention::HideFarKeys(const Tile& tile, int64_t first, int64_t count) const {
  for (int64_t i = 0; i < tile.count; ++i) {
    float* row = tile.scores.Rows(i).data;
    const int64_t at = tile.row + i;
    const int64_t begin =
        sizes_.before < 0 ? 0 : std::clamp<int64_t>(WindowBegin(at) - first, 0, count);
    const int64_t end =
        sizes_.after < 0 ? count : std::clamp<int64_t>(WindowEnd(at) - first, 0, count);
    std::fill(row, row + begin, kFar);
    std::fill(row + end, row + count, kFar);
    if (sizes_.causal)
      std::fill(row + std::clamp<int64_t>(at - first + 1, begin, end), row + end, kHidden);
  }
}

// Products read weights up to whole rows of their kernels.
static_assert(kSoftmaxPadding == kFewestKernelRows);

void BlockAttention::Weigh(const Tile& tile, int64_t count) const {
  const float scale = sizes_.cap > 0 ? 1.0F : static_cast<float>(sizes_.scale);
  if (rounded_) {
    RowWeights(tile.scores, tile.count, count, scale, tile.most, tile.factors, tile.totals,
               AsBf16(tile.rounded_weights, kTransposedStride));
  } else {
    RowWeights(tile.scores, tile.count, count, scale, tile.most, tile.factors, tile.totals);
  }
}

void BlockAttention::AddValues(int64_t head, const Tile& tile, float* memory, int64_t count,
                               bool add) const {
  const int64_t inner = sizes_.value_inner();
  const int64_t column = KeyHead(head) * sizes_.value_width;
  const int64_t whole = WholeKernelRows(count);
  float* values = ValuesIn(memory);
  if (rounded_) {
    const Bf16Block weights = AsBf16(tile.rounded_weights, kTransposedStride);
    Bf16Product(tile.padded, sizes_.value_width, whole, weights,
                AsBf16(values, 2 * inner).Columns(2 * column), tile.sums, add);
  } else {
    BlockProduct(tile.padded, sizes_.value_width, whole, tile.scores,
                 RowBlock(values, inner).Columns(column), tile.sums, add);
  }
}

LaidOutKeys::LaidOutKeys(const BlockAttention& attention, int64_t rows, int64_t scratch_elements,
                         const LayOut& lay_out)
    : rows_(rows), block_rows_(BlockRowsOf(rows)) {
  const int64_t blocks = (rows + block_rows_ - 1) / block_rows_;
  memory_ = at::empty({blocks, attention.KeyElements(block_rows_)}, at::kFloat);
  const int64_t at_once = kKeyBlocksOfThread * BlockThreads();
  for (int64_t first = 0; first < blocks; first += at_once) {
    const int64_t end = std::min(blocks, first + at_once);
    ForSideBySide(first, end, scratch_elements, [&](int64_t block, float* scratch) {
      const int64_t place = block * block_rows_;
      lay_out(place, std::min(block_rows_, rows - place), BlockOf(memory_, block).data, scratch);
    });
    RowsRead(std::min(rows, end * block_rows_) - first * block_rows_);
  }
}

}  // namespace linserve
