#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "attention/blocks/block_attention.h"
#include "attention/blocks/block_slots.h"

namespace linserve {

// Computes the attention of one sequence by landmarks (landmark_attention.h), block by block. Its
// products are of F32: the pseudo-inverse magnifies what is rounded.
class BlockLandmarks {
 public:
  struct Sizes {
    int64_t heads;
    int64_t dim_head;
    int64_t landmarks;
    bool by_head;  // where the inverse begins
  };

  // Reads queries and keys of the whole sequence, side by side as rows [rows, >= 2 · heads ·
  // dim_head], and the keys and values that `attention` laid out of it. REQUIRES: the landmarks
  // divide the rows.
  BlockLandmarks(const Sizes& sizes, const at::Tensor& rows, const BlockAttention& attention,
                 const BlockAttention::Keys& keys, const BlockAttention::Scores& scores);

  // Computes out [count, heads · dim_head] for a block of queries. `scratch` has ScratchElements().
  void Attend(const RowBlock& queries, int64_t count, const RowBlock& out, float* scratch) const {
    slots_.Attend(queries, /*row=*/0, count, out, scratch);
  }
  static int64_t ScratchElements(const Sizes& sizes) {
    return BlockSlots::ScratchElements(SlotsOf(sizes));
  }

 private:
  static BlockSlots::Sizes SlotsOf(const Sizes& sizes) {
    return {sizes.landmarks, sizes.heads, sizes.heads, sizes.dim_head};
  }

  BlockSlots slots_;
};

}  // namespace linserve
