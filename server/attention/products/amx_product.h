#pragma once

#include <cstdint>

#include "attention/products/bf16_product.h"
#include "attention/products/block_math.h"
#include "attention/products/int8_product.h"

namespace linserve {

// These compute what Bf16Product() and Int8Product() do by the tiles of AMX: squares of 16 rows of
// 64 bytes. They are set up once a product, and what is no whole tile is copied into one.
// LibTorch's kernels look themselves up and set tiles up for every few columns, and leave sums of
// bytes in memory to be scaled later, which takes an eighth of the time in int8.

bool HasAmx();

// REQUIRES: HasAmx().
void Bf16ProductWithAmx(int64_t m, int64_t n, int64_t k, const Bf16Block& a, const Bf16Block& b,
                        const RowBlock& c, bool add);
void Int8ProductWithAmx(const Int8Operands& of, const RowBlock& out, bool add);

// Keeps the tiles set up from product to product of the calling thread, for as long as it lives.
// Where there is no AMX it does nothing. REQUIRES: nothing of LibTorch multiplies meanwhile, which
// would set them up for itself.
class AmxScope {
 public:
  AmxScope();
  ~AmxScope();
  AmxScope(const AmxScope&) = delete;
  AmxScope& operator=(const AmxScope&) = delete;
};

}  // namespace linserve
