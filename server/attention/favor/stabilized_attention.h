#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "attention/favor/stabilized_features.h"
#include "attention/products/block_product.h"

namespace linserve {

// These compute attention by stabilized features of one sequence whose rows come in blocks, so that
// neither its keys nor any features need ever exist as a whole:
//   out_t = φ(q_t) · Σ_s φ(k_s) v_sᵀ / (φ(q_t) · (Σ_s φ(k_s) + added))
// They take F32 on the CPU.

// The sums are over all keys.
class StabilizedAttention {
 public:
  // `features` must outlive it.
  StabilizedAttention(int64_t heads, int64_t dim_head, const StabilizedFeatures& features,
                      double added = 0);

  void Begin();
  // Takes keys and values [count, heads · dim_head]. On all threads, head by head.
  void Add(const RowBlock& keys, const RowBlock& values, int64_t count);
  // Adds what eps adds. Call it after the last Add() and before the first Attend().
  void Finish();

  // out = the attention of a block of queries [count, heads · dim_head].
  void Attend(const RowBlock& queries, int64_t count, const RowBlock& out, float* scratch) const;
  int64_t ScratchElements() const;

 private:
  void AddHead(int64_t head, const RowBlock& keys, const RowBlock& values, int64_t count,
               float* scratch);
  // Brings the sums of a head to a shift that is no smaller.
  void Shift(int64_t head, float largest);

  int64_t heads_;
  int64_t dim_head_;
  const StabilizedFeatures& features_;
  double added_;
  int64_t rows_ = 0;
  at::Tensor context_;       // Σ_s φ(k_s) v_sᵀ [heads, features, dim_head]
  at::Tensor total_;         // Σ_s φ(k_s) [heads, features]
  at::Tensor values_;        // Σ_s v_s [heads, dim_head]
  std::vector<float> most_;  // the largest u so far, of each head
};

// The sums are over the keys up to t, but a shift is of all keys: these come twice.
class StabilizedCausalAttention {
 public:
  StabilizedCausalAttention(int64_t heads, int64_t dim_head, const StabilizedFeatures& features,
                            double added);

  void Begin();
  // Takes keys [count, heads · dim_head]. All of the sequence's come here before the first row is
  // attended, if this is asked for.
  bool looks_ahead() const { return features_.is_positive(); }
  void LookAhead(const RowBlock& keys, int64_t count);
  // Takes the next rows, [count, heads · dim_head]; the queries are overwritten by the result. All
  // threads compute it, head by head.
  void Attend(const RowBlock& queries, const RowBlock& keys, const RowBlock& values, int64_t count);

 private:
  void AttendHead(int64_t head, const RowBlock& queries, const RowBlock& keys,
                  const RowBlock& values, int64_t count, float* scratch);

  int64_t heads_;
  int64_t dim_head_;
  const StabilizedFeatures& features_;
  double added_;
  at::Tensor context_;  // as above
  at::Tensor total_;
  std::vector<float> most_;
};

}  // namespace linserve
