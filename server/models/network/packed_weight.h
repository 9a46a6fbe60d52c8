#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "attention/products/block_math.h"
#include "core/tensor/dtype.h"

namespace linserve {

// Returns the types that this CPU multiplies in: F32, and of BF16 and I8 those that it has kernels
// for.
std::vector<DType> ProductTypes();

// Holds the matrix of a torch.nn.Linear, laid out for products with blocks of rows: transposed, and
// in contiguous panels of columns. Rows come and go in F32 whatever the products are computed in.
//
// In BF16 both operands are rounded to it. In I8 each output's weights are multiples of 1/127 of
// the largest one of them, and each row, when it comes, is laid on 255 steps from its smallest
// value to its largest. Sums are of F32 or exact.
class PackedWeight {
 public:
  PackedWeight() = default;
  // Packs weight [outputs, inputs] for products in F32, BF16 or I8, if it is F32 on the CPU, or
  // BF16 for those. Of any other one nothing is packed, and this is false. REQUIRES: the type is
  // one of ProductTypes().
  PackedWeight(const at::Tensor& weight, DType products);

  explicit operator bool() const { return panels_.defined(); }

  // Says whether rows are rounded before they are multiplied.
  bool rounds() const { return products_ != DType::kF32; }

  // Makes rows that are multiplied, `count` of them from `row` on. REQUIRES: it multiplies by none.
  using MakeRows = std::function<void(int64_t row, int64_t count)>;

  // Computes out [count, outputs] = rows [count, inputs] · weightᵀ + bias [outputs], or with `add`
  // out += that, on the threads that the calling one has. `bias` may be nullptr. `make`, where
  // there is one, is called for all rows before they are read: for a few at a time where these are
  // rounded, which so are in the first cache still.
  void Multiply(const RowBlock& rows, int64_t count, const RowBlock& out, bool add,
                const float* bias = nullptr, const MakeRows& make = {}) const;

 private:
  // Calls round(row, count) for a few rows after others, and `make` before it.
  void ForFewRows(int64_t count, const MakeRows& make, const MakeRows& round) const;
  // Calls multiply(first, end) for all columns, or side by side for shares of them.
  void ForColumns(const std::function<void(int64_t first, int64_t end)>& multiply) const;
  void MultiplyF32(const RowBlock& rows, int64_t count, const RowBlock& out, bool add) const;
  void MultiplyBf16(const RowBlock& rows, int64_t count, const RowBlock& out, bool add,
                    const MakeRows& make) const;
  void MultiplyInt8(const RowBlock& rows, int64_t count, const RowBlock& out, bool add,
                    const float* bias, const MakeRows& make) const;
  // Says how many columns a panel has.
  int64_t Width() const;

  int64_t inputs_ = 0;
  int64_t depth_ = 0;  // inputs with zeros up to a multiple that the products want
  int64_t outputs_ = 0;
  DType products_ = DType::kF32;
  at::Tensor panels_;
  at::Tensor scales_;  // of int8 weights [outputs]
  at::Tensor totals_;  // of the int8 weights of each output, scaled
};

}  // namespace linserve
