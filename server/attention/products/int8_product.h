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

// Right operands have so many rows side by side, and so k is a multiple of it.
constexpr int64_t kInt8Group = 4;
// Sums of more products may not fit 32 bits.
constexpr int64_t kMostInt8Depth = 65536;
// Says whether this CPU has kernels for products of blocks in int8.
bool HasInt8Kernels();

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

// Computes c [rows, n] = a [rows, k] · b exactly, on the calling thread, for WholeKernelRows(count)
// rows, which both a and c have. b [k, n], of numbers in ±127, is in groups of kInt8Group rows, [n,
// kInt8Group] each. REQUIRES: HasInt8Kernels(); k at most kMostInt8Depth.
void Int8Product(int64_t count, int64_t n, int64_t k, const ByteBlock& a, const int8_t* b,
                 int32_t* c);

// Says how sums of products in int8 become numbers, column by column.
struct ColumnScales {
  const float* scales;
  const float* totals;  // of the column's numbers, which the rows' lowest ones are multiplied by
  const float* bias;
};

// Computes out [count, width] = sums · of_columns.scales · scales.steps[i] + of_columns.totals ·
// scales.lowest[i] + of_columns.bias, or adds it to what is there.
void FromInt8(const int32_t* sums, int64_t count, int64_t width, const RowScales& scales,
              const ColumnScales& of_columns, const RowBlock& out, bool add);

}  // namespace linserve
