#pragma once

#include <array>
#include <cstdint>

namespace linserve {

// A kernel is made for each shape. Of products in BF16 and int8 there are kernels for these numbers
// of rows only, so left operands must be readable up to a multiple of the smallest; what is there
// does not matter.
constexpr int64_t kFewestKernelRows = 16;
constexpr std::array<int64_t, 8> kKernelRows = {128, 112, 96, 80, 64, 48, 32, kFewestKernelRows};

constexpr int64_t RoundUp(int64_t number, int64_t step) {
  return (number + step - 1) / step * step;
}

// Returns the rows that are multiplied for so many.
constexpr int64_t WholeKernelRows(int64_t rows) { return RoundUp(rows, kFewestKernelRows); }

}  // namespace linserve
