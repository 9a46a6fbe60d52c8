#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "attention/products/block_math.h"

namespace linserve {

// Convolves a sequence's rows along its length with one kernel for the columns of each head, as if
// zeros were around them. It takes F32 on the CPU.
class BlockConvolution {
 public:
  BlockConvolution() = default;
  // Takes kernel [heads, 1, size, 1], of an odd size and centred.
  explicit BlockConvolution(const at::Tensor& kernel);

  // Adds to out [count, heads · dim_head] the results for rows [length, heads · dim_head] from
  // `row` on, on the calling thread. O(count · size · heads · dim_head).
  void Add(const RowBlock& rows, int64_t length, int64_t row, int64_t count, int64_t dim_head,
           const RowBlock& out) const;

 private:
  int64_t heads_ = 0;
  int64_t size_ = 0;
  at::Tensor weights_;  // [heads, zeros, size, zeros]: several rows are convolved at once
};

// Holds a kernel of its own for each of `width` columns, over so many rows up to a row itself,
// whose weights are the last: weights [size, width], bias [width] or nullptr.
struct ColumnKernels {
  const float* weights;
  const float* bias;
  int64_t size;
  int64_t width;
};

// Convolves a block of rows along their length, on the calling thread: out_t = bias + Σ_i
// weights_(size - 1 - i) · rows_(t - i), for i below size. So many rows of the sequence stand
// before the block's in memory, and zeros are before these. `out` is beside `rows`. O(count · size
// · width).
void ConvolveColumns(const RowBlock& rows, int64_t before, int64_t count,
                     const ColumnKernels& kernels, const RowBlock& out);

// rows [count, width] *= factors, number by number
void MultiplyRows(const RowBlock& rows, const RowBlock& factors, int64_t count, int64_t width);

}  // namespace linserve
