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
// What is added to a number to make a byte of it.
constexpr int32_t kInt8Zero = 128;

// Says whether this CPU has kernels for products of blocks in int8.
bool HasInt8Kernels();

// Makes bytes of rows [count, width]: row i is nearly scales[i] · (bytes - kInt8Zero), to half a
// step of 127 to the row's largest number. Of a row that is not finite the scale is none.
void ToInt8(const RowBlock& rows, int64_t count, int64_t width, const ByteBlock& out,
            float* scales);

// Computes c [rows, n] = a [rows, k] · b exactly, on the calling thread, for WholeKernelRows(count)
// rows, which both a and c have. b [k, n], of numbers in ±127, is in groups of kInt8Group rows, [n,
// kInt8Group] each. REQUIRES: HasInt8Kernels(); k at most kMostInt8Depth.
void Int8Product(int64_t count, int64_t n, int64_t k, const ByteBlock& a, const int8_t* b,
                 int32_t* c);

// Says how sums of products in int8 become numbers, column by column.
struct ColumnScales {
  const float* scales;
  const float* offsets;
  const float* bias;
};

// Computes out [count, width] = (sums · of_columns.scales - of_columns.offsets) · scales[i] +
// of_columns.bias, or adds it to what is there.
void FromInt8(const int32_t* sums, int64_t count, int64_t width, const float* scales,
              const ColumnScales& of_columns, const RowBlock& out, bool add);

}  // namespace linserve
