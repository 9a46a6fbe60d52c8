#pragma once

#include <c10/util/BFloat16.h>

#include <cstdint>

#include "attention/products/block_math.h"

namespace linserve {

// Views rows of BF16, `stride` elements apart, as RowBlock does those of F32.
struct Bf16Block {
  c10::BFloat16* data;
  int64_t stride;

  Bf16Block Columns(int64_t first) const { return {data + first, stride}; }
  Bf16Block Rows(int64_t first) const { return {data + first * stride, stride}; }
};

// out [count, width] = rows, each to the nearest number of BF16. What is nearer to 0 than 2^-126
// may become 0, here and in pairs.
void ToBf16(const RowBlock& rows, int64_t count, int64_t width, const Bf16Block& out);

// Lays rows [count, width] out as a right operand: of each pair of rows, [width, 2] is one row of
// `out`. Rows of zeros follow up to `padded`, an even number.
void ToBf16Pairs(const RowBlock& rows, int64_t count, int64_t width, int64_t padded,
                 const Bf16Block& out);

}  // namespace linserve
