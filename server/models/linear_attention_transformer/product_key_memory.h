#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "models/network/layers.h"

namespace linserve::linear_attention_transformer {

// Is product_key_memory.PKM 0.3.0 as linear-attention-transformer builds it (Lample et al. 2019,
// arXiv:1907.05242): each row looks up the 32 best of 128² values in each of 4 heads. A value's
// score is the sum of two dots of half-queries with half-keys, so that 2·128 dots rank all of them.
class ProductKeyMemory {
 public:
  explicit ProductKeyMemory(int64_t dim);

  void Declare(const Scope& scope);

  // Maps x [rows, dim] to [rows, dim].
  at::Tensor operator()(const at::Tensor& x) const;

  int64_t Flops() const;  // a row

 private:
  at::Tensor LookUp(const at::Tensor& x) const;

  int64_t dim_;
  Linear to_queries_;
  LayerNorm norm_;
  at::Tensor keys_;    // [heads, keys, 2, dim_head]
  at::Tensor values_;  // [keys², dim]
};

}  // namespace linserve::linear_attention_transformer
