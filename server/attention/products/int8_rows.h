#pragma once

#include <cstdint>

#include "attention/products/block_math.h"

namespace linserve {

// Views rows of bytes, as RowBlock does those of F32.
struct ByteBlock {
  uint8_t* data;
  int64_t stride;

  ByteBlock Rows(int64_t first) const { return {data + first * stride, stride}; }
};

// Says how rows of numbers became bytes: row i is nearly lowest[i] + steps[i] · bytes.
struct RowScales {
  float* steps;
  float* lowest;
};

// Makes bytes of rows [count, width], to half of one of 255 steps between each row's smallest
// number and its largest: what GELU and norms give lies farther to one side of 0 than to the other.
// Of a row that is not finite, or whose range F32 does not hold, the step is no number.
void ToInt8(const RowBlock& rows, int64_t count, int64_t width, const ByteBlock& out,
            const RowScales& scales);

// Says how sums of products in int8 become numbers, column by column.
struct ColumnScales {
  const float* scales;
  const float* totals;  // of the column's numbers, which the rows' lowest ones are multiplied by
  const float* bias;
};

// Computes out [count, width] = sums · of_columns.scales · scales.steps[i] + of_columns.totals ·
// scales.lowest[i] + of_columns.bias, or adds it to what is there. Rows of sums are `stride` apart.
void FromInt8(const int32_t* sums, int64_t stride, int64_t count, int64_t width,
              const RowScales& scales, const ColumnScales& of_columns, const RowBlock& out,
              bool add);

}  // namespace linserve
