#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "attention/linear/causal_linear_attention.h"
#include "attention/products/block_product.h"

namespace linserve {

// Computes LinearAttention() (attention/linear/linear_attention.h) of one sequence whose rows come
// in blocks, so that neither its keys nor its queries need ever exist as a whole. It takes F32 on
// the CPU.
class BlockLinearAttention {
 public:
  struct Sizes {
    int64_t heads;
    int64_t dim_head;             // of queries and keys
    int64_t value_width = 0;      // of a head; 0: dim_head
    bool softmax_queries = true;  // else they are taken as they are
  };

  // The result is multiplied by `factor`.
  explicit BlockLinearAttention(const Sizes& sizes, double factor = 1);

  void Begin();
  // Takes keys [count, heads · dim_head], which it overwrites, and values [count, heads ·
  // value_width]. A row that nothing sees has the lowest number as its keys and zeros as its
  // values. On all threads, head by head.
  void Add(const RowBlock& keys, const RowBlock& values, int64_t count);
  // Divides by the keys' sums. Call it after the last Add() and before the first Attend().
  void Finish();

  // out [count, heads · value_width] = the attention of a block of queries [count, heads ·
  // dim_head], which it overwrites.
  void Attend(const RowBlock& queries, int64_t count, const RowBlock& out, float* scratch) const;
  int64_t ScratchElements() const;

 private:
  Sizes sizes_;
  double factor_;
  at::Tensor context_;            // Σ_s κ_s v_sᵀ [heads, dim_head, value_width]
  at::Tensor most_, sums_;        // of the keys and of κ [heads, dim_head]
  at::Tensor factors_, weights_;  // scratch of Add()
};

// Computes CausalLinearAttention() of one sequence whose rows come in blocks.
class BlockCausalAttention {
 public:
  // Says whether blocks hold whole buckets of so many rows.
  static bool Takes(int64_t bucket) { return bucket <= kCausalBlock && kBlockRows % bucket == 0; }

  // REQUIRES: Takes(bucket).
  BlockCausalAttention(int64_t heads, int64_t dim_head, const CausalDivisor& divisor = {},
                       int64_t bucket = 1);

  void Begin() { state_ = {}; }
  // Takes the next rows: queries, keys and values [count, heads · dim_head], each of which is
  // overwritten, the queries by the result. All but the last call have whole buckets, as multiples
  // of kBlockRows do. All threads compute it, head by head.
  void Attend(const RowBlock& queries, const RowBlock& keys, const RowBlock& values, int64_t count);

 private:
  bool FitsF32(const RowBlock& keys, int64_t count) const;
  void AttendInF64(const RowBlock& queries, const RowBlock& keys, const RowBlock& values,
                   int64_t count);
  void AttendHead(int64_t head, const RowBlock& queries, const RowBlock& keys,
                  const RowBlock& values, int64_t count, float* scratch);

  int64_t heads_;
  int64_t dim_head_;
  CausalDivisor divisor_;
  int64_t bucket_;
  CausalState state_;
};

}  // namespace linserve
