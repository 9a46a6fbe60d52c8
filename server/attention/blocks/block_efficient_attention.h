#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "attention/products/block_math.h"

namespace linserve {

// Computes causal EfficientAttention() (attention/linear/efficient_attention.h) of one sequence
// whose rows come in blocks, F32 on the CPU. Without causality it is BlockLinearAttention.
class BlockEfficientAttention {
 public:
  BlockEfficientAttention(int64_t heads, int64_t dim_head);

  void Begin();
  // Takes the next rows: queries, keys and values [count, heads · dim_head], each of which is
  // overwritten, the queries by the result. A row that nothing sees has the lowest number as its
  // keys and zeros as its values. All threads compute it, head by head.
  void Attend(const RowBlock& queries, const RowBlock& keys, const RowBlock& values, int64_t count);

 private:
  struct Head;
  // Says whether one feature grows so much within the rows that weights of the first ones vanish
  // beside those of the last ones.
  bool Grows(const Head& own, const RowBlock& keys, int64_t count) const;
  void AttendRows(const Head& own, const RowBlock& queries, const RowBlock& keys,
                  const RowBlock& values, int64_t count) const;

  int64_t heads_;
  int64_t dim_head_;
  at::Tensor values_;          // Σ_j w_jᵀ v_j [heads, dim_head, dim_head]
  at::Tensor most_, weights_;  // of the keys, and the sum of their weights [heads, dim_head]
};

}  // namespace linserve
