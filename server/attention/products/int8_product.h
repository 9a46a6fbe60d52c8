#pragma once

#include <cstdint>

#include "attention/products/block_math.h"
#include "attention/products/int8_rows.h"

namespace linserve {

// Right operands have so many rows side by side, and so k is a multiple of it.
constexpr int64_t kInt8Group = 4;
// Sums of more products may not fit 32 bits.
constexpr int64_t kMostInt8Depth = 65536;
// Says whether this CPU has kernels for products of blocks in int8.
bool HasInt8Kernels();

// Multiplies rows [count, k] by columns [k, n]. There are WholeKernelRows(count) rows; what the
// last ones are does not matter. Columns are of numbers in ±127, in groups of kInt8Group rows, [n,
// kInt8Group] each.
struct Int8Operands {
  int64_t count;
  int64_t n;
  int64_t k;
  ByteBlock rows;
  RowScales of_rows;
  const int8_t* columns;
  ColumnScales of_columns;
};

// Computes out [count, n] = the exact sums of the operands' bytes as numbers (int8_rows.h), or with
// `add` out += that, on the calling thread. REQUIRES: HasInt8Kernels(); k at most kMostInt8Depth.
void Int8Product(const Int8Operands& operands, const RowBlock& out, bool add);

// Says whether LibTorch has kernels for this CPU, whose sums are exact.
bool HasLibTorchInt8();

// Computes what Int8Product() does. REQUIRES: HasLibTorchInt8().
void Int8ProductWithLibTorch(const Int8Operands& operands, const RowBlock& out, bool add);

}  // namespace linserve
