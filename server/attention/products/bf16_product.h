#pragma once

#include <cstdint>

#include "attention/products/bf16_rows.h"
#include "attention/products/block_math.h"

namespace linserve {

// Says whether this CPU has kernels for products of blocks in BF16.
bool HasBf16Kernels();

// Says whether they are there and clearly faster than those in F32, as on some CPUs they are not.
// It is measured once a process, which takes a millisecond. What need not be in BF16 asks this.
bool Bf16KernelsPay();

// Computes c [m, n] = a [m, k] · b, or with `add` c += a · b, on the calling thread. b [k, n] is in
// pairs of rows, and k even. Sums are of F32. `a` is readable as kernel_rows.h says. REQUIRES:
// HasBf16Kernels().
void Bf16Product(int64_t m, int64_t n, int64_t k, const Bf16Block& a, const Bf16Block& b,
                 const RowBlock& c, bool add);

}  // namespace linserve
