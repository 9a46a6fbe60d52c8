#include "models/network/self_attention_by_blocks.h"

#include <algorithm>

#include "attention/blocks/sequence_groups.h"
#include "attention/products/kernel_rows.h"
#include "attention/rows/aten.h"
#include "attention/rows/slices.h"

namespace linserve {
namespace {

// A thread lays out so many blocks of keys before others may get a turn.
constexpr int64_t kBlocksOfThread = 4;

using ByBlocks = SelfAttentionByBlocks;

int64_t NormedElements(const ByBlocks& layer) { return kBlockRows * layer.rows.size(1); }

int64_t ScratchElements(const ByBlocks& layer) {
  const int64_t attended = ByBlocks::AttendedElements(layer.width) + NormedElements(layer) +
                           layer.attention.KeyElements(kBlockRows) +
                           layer.attention.ScratchElements();
  return std::max(attended, layer.scratch_elements);
}

void LayOut(const ByBlocks& layer, const RowBlock& qkv, int64_t count, float* memory,
            float* scratch) {
  layer.attention.LayOut(qkv.Columns(layer.keys), qkv.Columns(layer.values), count, memory,
                         scratch);
}

// Applies it to sequences that are one block together, on the calling thread.
void ApplyToGroup(const ByBlocks& layer, const SequenceGroup& group, float* scratch) {
  const RowBlock qkv{scratch, layer.width};
  float* normed = scratch + ByBlocks::AttendedElements(layer.width);
  float* memory = normed + NormedElements(layer);
  float* own = memory + layer.attention.KeyElements(kBlockRows);
  layer.project(group.row, group.rows, qkv, normed);
  for (size_t i = group.first; i < group.end(); ++i) {
    const int64_t start = layer.layout.starts[i];
    const int64_t length = layer.layout.lengths[i];
    const RowBlock queries = qkv.Rows(start - group.row);
    layer.turn(queries, 0, length);
    LayOut(layer, queries, length, memory, own);
    layer.attention.Attend(queries, 0, length, {memory, length, kBlockRows}, layer.scores(start),
                           queries, own);
    if (layer.add) layer.add(queries, length, 0, length, queries);
  }
  layer.finish(BlockOf(layer.rows, group.row), qkv, group.rows, scratch);
}

// Makes queries, keys and values of a sequence's rows, and returns the blocks of its keys.
at::Tensor LayOutKeys(const ByBlocks& layer, size_t sequence, const at::Tensor& qkv) {
  const int64_t start = layer.layout.starts[sequence];
  const int64_t length = layer.layout.lengths[sequence];
  const int64_t block_rows = BlockAttention::KeyBlockRows(length);
  const int64_t count = (length + block_rows - 1) / block_rows;
  at::Tensor memory =
      at::empty({count, layer.attention.KeyElements(block_rows)}, layer.rows.options());
  const auto lay_out = [&](int64_t block, float* scratch) {
    const int64_t begin = block * block_rows;
    const int64_t some = std::min(block_rows, length - begin);
    const RowBlock laid = BlockOf(qkv, begin);
    layer.project(start + begin, some, laid, scratch);
    layer.turn(laid, begin, some);
    LayOut(layer, laid, some, BlockOf(memory, block).data, scratch + NormedElements(layer));
  };
  const int64_t at_once = kBlocksOfThread * BlockThreads();
  for (int64_t first = 0; first < count; first += at_once) {
    const int64_t end = std::min(count, first + at_once);
    ForSideBySide(first, end, NormedElements(layer) + layer.attention.ScratchElements(), lay_out);
    RowsRead(std::min(length, end * block_rows) - first * block_rows);
  }
  return memory;
}

// Applies it to one sequence block by block, side by side.
void ApplyToSequence(const ByBlocks& layer, size_t sequence) {
  const int64_t start = layer.layout.starts[sequence];
  const int64_t length = layer.layout.lengths[sequence];
  const at::Tensor qkv = at::empty({length + kFewestKernelRows, layer.width}, layer.rows.options());
  const at::Tensor memory = LayOutKeys(layer, sequence, qkv);
  const BlockAttention::Keys keys{memory.mutable_data_ptr<float>(), length,
                                  BlockAttention::KeyBlockRows(length)};
  const BlockAttention::Scores scores = layer.scores(start);
  const ByBlocks::Attend attend =
      layer.attend ? layer.attend(qkv, keys, scores) : ByBlocks::Attend();
  ForSlicedBlocks(
      length, ScratchElements(layer), [&](int64_t begin, int64_t count, float* scratch) {
        const RowBlock attended{scratch, layer.keys};
        float* own = attended.Rows(kBlockRows).data;
        if (attend) {
          attend(BlockOf(qkv, begin), count, attended, own);
        } else {
          layer.attention.Attend(BlockOf(qkv, begin), begin, count, keys, scores, attended, own);
        }
        if (layer.add) layer.add(BlockOf(qkv), length, begin, count, attended);
        layer.finish(BlockOf(layer.rows, start + begin), attended, count, scratch);
      });
}

}  // namespace

int64_t SelfAttentionByBlocks::AttendedElements(int64_t width) {
  return BlockAttention::kReadableRows * width;
}

void Apply(const SelfAttentionByBlocks& layer) {
  if (layer.attend) {
    for (size_t i = 0; i < layer.layout.lengths.size(); ++i) ApplyToSequence(layer, i);
    return;
  }
  ForSequenceGroups(
      layer.layout, ScratchElements(layer),
      [&](const SequenceGroup& group, float* scratch) { ApplyToGroup(layer, group, scratch); },
      [&](size_t sequence) { ApplyToSequence(layer, sequence); });
}

}  // namespace linserve
