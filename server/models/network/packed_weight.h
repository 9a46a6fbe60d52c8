#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "attention/blocks/block_math.h"

namespace linserve {

// Holds the matrix of a torch.nn.Linear, laid out for products with blocks of rows: transposed, and
// in contiguous panels of columns.
class PackedWeight {
 public:
  PackedWeight() = default;
  // Packs weight [outputs, inputs] if it is F32 on the CPU. Of any other one nothing is packed, and
  // this is false.
  explicit PackedWeight(const at::Tensor& weight);

  explicit operator bool() const { return panels_.defined(); }

  // Computes out [count, outputs] = rows [count, inputs] · weightᵀ, or with `add` out += that, on
  // the calling thread.
  void Multiply(const RowBlock& rows, int64_t count, const RowBlock& out, bool add) const;

 private:
  int64_t inputs_ = 0;
  int64_t outputs_ = 0;
  at::Tensor panels_;
};

}  // namespace linserve
