#pragma once

#include <cstdint>

#include "attention/products/int8_product.h"

namespace linserve {

// Says whether this CPU has AVX2.
bool HasAvx2();

// Computes what Int8Product() does, with AVX2 alone: the products of 16-bit numbers add up exactly
// in pairs, where those of bytes would be cut. REQUIRES: HasAvx2().
void Int8ProductWithAvx2(const Int8Operands& operands, const RowBlock& out, bool add);

}  // namespace linserve
