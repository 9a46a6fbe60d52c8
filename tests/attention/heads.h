#pragma once

#include "attention/rows/aten.h"

// These are random heads for the tests of sequences that go on.
namespace linserve {

inline constexpr int64_t kHeads = 2;
inline constexpr int64_t kWidth = 4;

inline at::Tensor RandomHeads(int64_t sequences, int64_t length) {
  return at::randn({sequences, kHeads, length, kWidth});
}

}  // namespace linserve
