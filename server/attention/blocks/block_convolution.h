#pragma once

#include <cstdint>

#include "attention/blocks/block_math.h"

namespace linserve {

// Holds one kernel [heads, size] for the columns of each head, of odd size and centred.
struct RowKernel {
  const float* weights;
  int64_t heads;
  int64_t size;
};

// Adds to out [count, heads · dim_head] the convolution of a sequence's rows [length, heads ·
// dim_head] along its length, for its rows from `row` on, as if zeros were around them. It runs on
// the calling thread. O(count · size · heads · dim_head).
void AddConvolution(const RowBlock& rows, int64_t length, int64_t row, int64_t count,
                    int64_t dim_head, const RowKernel& kernel, const RowBlock& out);

}  // namespace linserve
