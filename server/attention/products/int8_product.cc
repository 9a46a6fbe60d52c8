#include "attention/products/int8_product.h"

#include <ATen/native/CPUBlas.h>

#include <array>
#include <bit>

#include "attention/products/kernel_rows.h"
#include "attention/products/vectorized.h"

namespace linserve {
namespace {

void Kernel(int64_t m, int64_t n, int64_t k, const ByteBlock& a, const int8_t* b, int32_t* c) {
  at::native::cpublas::brgemm(m, n, k, a.stride, n, n, /*add_C=*/false, a.data,
                              reinterpret_cast<const signed char*>(b), c, /*is_vnni=*/true);
}

bool TryInt8Kernel() {
  constexpr int64_t kTried = 16;
  std::array<uint8_t, kFewestKernelRows * kInt8Group> a{};
  std::array<int8_t, kTried * kInt8Group> b{};
  std::array<int32_t, kFewestKernelRows * kTried> c{};
  // With AVX2 alone sums of two products are cut to 16 bits: such kernels are not exact.
  a[0] = a[1] = UINT8_MAX;
  b[0] = b[1] = INT8_MAX;
  try {
    Kernel(kFewestKernelRows, kTried, kInt8Group, {a.data(), kInt8Group}, b.data(), c.data());
    at::native::cpublas::brgemm_release();
  } catch (const c10::Error&) {
    return false;  // neither VNNI nor AMX
  }
  return c[0] == 2 * UINT8_MAX * INT8_MAX;
}

// Returns the largest absolute value of a row, and what is no number where one is there: such bits
// are larger than those of any number.
LINSERVE_INLINE float LargestOf(const float* row, int64_t width) {
  uint32_t largest = 0;
#pragma omp simd reduction(max : largest)
  for (int64_t j = 0; j < width; ++j) {
    const uint32_t bits = std::bit_cast<uint32_t>(row[j]) & 0x7FFFFFFF;
    largest = bits > largest ? bits : largest;
  }
  return std::bit_cast<float>(largest);
}

LINSERVE_INLINE void RowToInt8(const float* row, int64_t width, float steps, uint8_t* out) {
  constexpr float kRound = 12582912.0F;  // 1.5 · 2^23: the last bits are those of the integer
#pragma omp simd
  for (int64_t j = 0; j < width; ++j) {
    const auto number = std::bit_cast<uint32_t>(row[j] * steps + kRound);
    out[j] = static_cast<uint8_t>(number + kInt8Zero);
  }
}

}  // namespace

bool HasInt8Kernels() {
  static const bool has = TryInt8Kernel();
  return has;
}

void ToInt8(const RowBlock& rows, int64_t count, int64_t width, const ByteBlock& out,
            float* scales) {
  constexpr float kSteps = 127;
  constexpr float kNothing = 1e-30F;  // 127 over less would be no number
  Vectorized([&]() __attribute__((always_inline)) {
    for (int64_t i = 0; i < count; ++i) {
      const float* row = rows.Rows(i).data;
      const float largest = LargestOf(row, width);
      scales[i] = largest / kSteps;
      RowToInt8(row, width, largest < kNothing ? 0 : kSteps / largest, out.Rows(i).data);
    }
  });
}

void Int8Product(int64_t count, int64_t n, int64_t k, const ByteBlock& a, const int8_t* b,
                 int32_t* c) {
  const int64_t most = WholeKernelRows(count);
  int64_t row = 0;
  for (const int64_t rows : kKernelRows) {
    for (; row + rows <= most; row += rows) Kernel(rows, n, k, a.Rows(row), b, c + row * n);
  }
  at::native::cpublas::brgemm_release();
}

}  // namespace linserve
