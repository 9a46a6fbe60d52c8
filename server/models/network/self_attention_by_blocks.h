#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

#include "attention/blocks/block_attention.h"
#include "attention/products/block_product.h"
#include "attention/rows/placed_layout.h"

namespace linserve {

// Describes a layer of softmax self-attention, and of whatever follows on each row, that is
// computed block by block: short sequences together, so that nothing of them leaves the cache
// between the layer's steps, and long ones by all threads. REQUIRES: packed layers.
struct SelfAttentionByBlocks {
  // Makes what `count` queries attend to, the first one of which is row `place` of its sequence.
  // `out` may be the queries.
  using Attend = std::function<void(const RowBlock& queries, int64_t place, int64_t count,
                                    const RowBlock& out, float* scratch)>;

  // Returns the scratch that attended values lie in, at its beginning; `width` is as below.
  static int64_t AttendedElements(int64_t width);

  const at::Tensor& rows;  // [rows, dim]: what the layer changes in place
  const PlacedLayout& layout;
  const BlockAttention& attention;
  int64_t width;  // of queries, keys and values side by side, in this order
  int64_t keys;   // is their first column, and the width of queries and of what they attend to
  int64_t values;
  // Is what `finish` takes, and what `attend` returns, attended values included.
  int64_t scratch_elements;

  // Makes queries, keys and values of `count` rows, the first one of which is the batch's row
  // `row`, with kBlockRows · dim elements of scratch.
  std::function<void(int64_t row, int64_t count, const RowBlock& qkv, float* scratch)> project;
  // Turns them by their positions; the first one is row `place` of its sequence.
  std::function<void(const RowBlock& qkv, int64_t place, int64_t count)> turn;
  // Returns what is added to scores in the sequence that begins at the batch's row `start`.
  std::function<BlockAttention::Scores(int64_t start)> scores;
  // Takes a block of `rows` from its attended values to the end of the layer. Those lie in the
  // scratch, which is free once they were read.
  std::function<void(const RowBlock& rows, const RowBlock& attended, int64_t count, float* scratch)>
      finish;
  // Adds to what `count` rows attended to, the first one of which is row `place` of the sequence
  // that has these `length` queries, keys and values; null: nothing.
  std::function<void(const RowBlock& qkv, int64_t length, int64_t place, int64_t count,
                     const RowBlock& attended)>
      add{};
  // Returns what attends in place of `attention` in one of the layout's sequences, and is made of
  // all of its queries, keys and values; null: nothing does.
  std::function<Attend(size_t sequence, const at::Tensor& qkv, const BlockAttention::Keys& keys,
                       const BlockAttention::Scores& scores)>
      attend{};
  // Says that short sequences are not computed together, since `attend` has all threads make it, or
  // takes more scratch than `attention`.
  bool alone = false;
};

// Applies the layer to all sequences.
void Apply(const SelfAttentionByBlocks& layer);

}  // namespace linserve
