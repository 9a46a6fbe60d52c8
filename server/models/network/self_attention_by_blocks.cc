#include "models/network/self_attention_by_blocks.h"

#include <algorithm>

#include "attention/blocks/sequence_groups.h"
#include "attention/products/kernel_rows.h"
#include "attention/rows/aten.h"

namespace linserve {
namespace {

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

// Returns what attends in a sequence to its keys.
ByBlocks::Attend AttendTo(const ByBlocks& layer, size_t sequence, const RowBlock& qkv,
                          const BlockAttention::Keys& keys) {
  const BlockAttention::Scores scores = layer.scores(layer.layout.starts[sequence]);
  if (layer.attend) {
    const at::Tensor rows = at::from_blob(qkv.data, {keys.rows, layer.width}, layer.rows.options());
    return layer.attend(sequence, rows, keys, scores);
  }
  return
      [&attention = layer.attention, keys, scores](
          const RowBlock& queries, int64_t place, int64_t count, const RowBlock& out,
          float* scratch) { attention.Attend(queries, place, count, keys, scores, out, scratch); };
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
    const BlockAttention::Keys keys{memory, length, kBlockRows};
    AttendTo(layer, i, queries, keys)(queries, 0, length, queries, own);
    if (layer.add) layer.add(queries, length, 0, length, queries);
  }
  layer.finish(BlockOf(layer.rows, group.row), qkv, group.rows, scratch);
}

// Makes queries, keys and values of a sequence's rows, and lays out the keys and values.
LaidOutKeys KeysOf(const ByBlocks& layer, size_t sequence, const at::Tensor& qkv) {
  const int64_t start = layer.layout.starts[sequence];
  return {layer.attention, layer.layout.lengths[sequence],
          NormedElements(layer) + layer.attention.ScratchElements(),
          [&](int64_t place, int64_t count, float* memory, float* scratch) {
            const RowBlock laid = BlockOf(qkv, place);
            layer.project(start + place, count, laid, scratch);
            layer.turn(laid, place, count);
            LayOut(layer, laid, count, memory, scratch + NormedElements(layer));
          }};
}

// Applies it to one sequence block by block, side by side.
void ApplyToSequence(const ByBlocks& layer, size_t sequence) {
  const int64_t start = layer.layout.starts[sequence];
  const int64_t length = layer.layout.lengths[sequence];
  const at::Tensor qkv = at::empty({length + kFewestKernelRows, layer.width}, layer.rows.options());
  const LaidOutKeys laid_out = KeysOf(layer, sequence, qkv);
  const BlockAttention::Keys keys = laid_out.keys();
  const ByBlocks::Attend attend = AttendTo(layer, sequence, BlockOf(qkv), keys);
  ForSlicedBlocks(length, ScratchElements(layer),
                  [&](int64_t begin, int64_t count, float* scratch) {
                    const RowBlock attended{scratch, layer.keys};
                    float* own = attended.Rows(kBlockRows).data;
                    attend(BlockOf(qkv, begin), begin, count, attended, own);
                    if (layer.add) layer.add(BlockOf(qkv), length, begin, count, attended);
                    layer.finish(BlockOf(layer.rows, start + begin), attended, count, scratch);
                  });
}

}  // namespace

int64_t SelfAttentionByBlocks::AttendedElements(int64_t width) {
  return BlockAttention::kReadableRows * width;
}

void Apply(const SelfAttentionByBlocks& layer) {
  if (layer.alone) {
    for (size_t i = 0; i < layer.layout.lengths.size(); ++i) ApplyToSequence(layer, i);
    return;
  }
  ForSequenceGroups(
      layer.layout, ScratchElements(layer),
      [&](const SequenceGroup& group, float* scratch) { ApplyToGroup(layer, group, scratch); },
      [&](size_t sequence) { ApplyToSequence(layer, sequence); });
}

}  // namespace linserve
