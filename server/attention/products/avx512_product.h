#pragma once

#include <cstdint>

#include "attention/products/bf16_product.h"
#include "attention/products/block_math.h"
#include "attention/products/int8_product.h"

namespace linserve {

// These compute what BlockProduct(), Bf16Product() and Int8Product() do by vectors of 64 bytes,
// with all sums of a tile in registers. Beside LibTorch's kernels, which are made for each shape
// and looked up at each call, small products gain most, and those in int8, whose sums become
// numbers where they are.

bool HasAvx512();
bool HasAvx512Bf16();
bool HasAvx512Vnni();

// REQUIRES: HasAvx512().
void BlockProductWithAvx512(int64_t m, int64_t n, int64_t k, const RowBlock& a, const RowBlock& b,
                            const RowBlock& c, bool add);
// REQUIRES: HasAvx512Bf16().
void Bf16ProductWithAvx512(int64_t m, int64_t n, int64_t k, const Bf16Block& a, const Bf16Block& b,
                           const RowBlock& c, bool add);
// REQUIRES: HasAvx512Vnni().
void Int8ProductWithAvx512(const Int8Operands& of, const RowBlock& out, bool add);

}  // namespace linserve
