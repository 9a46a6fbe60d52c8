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

// Says whether this CPU has kernels for products of blocks in BF16.
bool HasBf16Kernels();

// Says whether they are there and clearly faster than those in F32, as on some CPUs they are not.
// It is measured once a process, which takes a millisecond. What need not be in BF16 asks this.
bool Bf16KernelsPay();

// out [count, width] = rows, each to the nearest number of BF16.
void ToBf16(const RowBlock& rows, int64_t count, int64_t width, const Bf16Block& out);

// Lays rows [count, width] out as a right operand: of each pair of rows, [width, 2] is one row of
// `out`. Rows of zeros follow up to `padded`, an even number.
void ToBf16Pairs(const RowBlock& rows, int64_t count, int64_t width, int64_t padded,
                 const Bf16Block& out);

// Computes c [m, n] = a [m, k] · b, or with `add` c += a · b, on the calling thread. b [k, n] is in
// pairs of rows, and k even. Sums are of F32. `a` is readable as kernel_rows.h says. REQUIRES:
// HasBf16Kernels().
void Bf16Product(int64_t m, int64_t n, int64_t k, const Bf16Block& a, const Bf16Block& b,
                 const RowBlock& c, bool add);

}  // namespace linserve
