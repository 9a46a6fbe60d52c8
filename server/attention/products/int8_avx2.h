#pragma once

#include <cstdint>

#include "attention/products/int8_product.h"

namespace linserve {

// Says whether this CPU has AVX2.
bool HasAvx2();

// Computes c [count, n] = a · b as Int8Product does, with AVX2 alone: the products of 16-bit
// numbers add up exactly in pairs, where those of bytes would be cut. REQUIRES: HasAvx2().
void Int8ProductWithAvx2(int64_t count, int64_t n, int64_t k, const ByteBlock& a, const int8_t* b,
                         int32_t* c);

}  // namespace linserve
