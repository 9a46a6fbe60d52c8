#include "attention/products/bf16_product.h"

#include <ATen/native/CPUBlas.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <vector>

#include "attention/products/amx_product.h"
#include "attention/products/avx512_product.h"
#include "attention/products/block_product.h"
#include "attention/products/kernel_rows.h"
#include "core/system/seconds.h"

namespace linserve {
namespace {

// So many columns are multiplied at once, as a kernel is made for each number.
constexpr int64_t kColumnsAtOnce = 64;

void Kernel(int64_t m, int64_t n, int64_t k, const Bf16Block& a, const Bf16Block& b,
            const RowBlock& c, bool add) {
  // What stands between two rows of pairs, counted in pairs.
  const int64_t pairs = b.stride / 2;
  at::native::cpublas::brgemm(m, n, k, a.stride, pairs, c.stride, add, a.data, b.data, c.data,
                              /*is_vnni=*/true);
}

bool TryBf16Kernel() {
  std::array<c10::BFloat16, 2 * kFewestKernelRows> a{};
  std::array<c10::BFloat16, 2 * kFewestKernelRows> b{};
  std::array<float, kFewestKernelRows * kFewestKernelRows> c{};
  a[0] = 2;
  a[1] = 3;
  b[0] = 5;
  b[1] = 7;
  try {
    Kernel(kFewestKernelRows, kFewestKernelRows, 2, {a.data(), 2},
           {b.data(), 2 * kFewestKernelRows}, {c.data(), kFewestKernelRows},
           /*add=*/false);
    at::native::cpublas::brgemm_release();
  } catch (const c10::Error&) {
    return false;  // neither AVX-512 nor AMX
  }
  return c[0] == 31;
}

bool HasLibTorchKernel() {
  static const bool has = TryBf16Kernel();
  return has;
}

// Compares the least of several times, taken in turns: whatever comes in between meets both.
bool MeasureBf16Kernels() {
  using Clock = std::chrono::steady_clock;
  constexpr int kTimes = 6;  // of which the first makes the kernels
  constexpr int64_t kDepth = 128;
  // Where both are as fast, noise must not choose.
  constexpr double kClearly = 1.2;
  std::vector<float> a(kBlockRows * kDepth);
  std::vector<float> b(kDepth * kColumnsAtOnce);
  std::vector<float> c(kBlockRows * kColumnsAtOnce);
  const RowBlock sums{c.data(), kColumnsAtOnce};
  const auto rounded = [](std::vector<float>& memory, int64_t stride) {
    return Bf16Block{reinterpret_cast<c10::BFloat16*>(memory.data()), stride};
  };
  Clock::duration f32 = Clock::duration::max();
  Clock::duration bf16 = Clock::duration::max();
  for (int time = 0; time < kTimes; ++time) {
    const auto start = Clock::now();
    BlockProduct(kBlockRows, kColumnsAtOnce, kDepth, {a.data(), kDepth}, {b.data(), kColumnsAtOnce},
                 sums, /*add=*/false);
    const auto middle = Clock::now();
    Bf16Product(kBlockRows, kColumnsAtOnce, kDepth, rounded(a, kDepth),
                rounded(b, 2 * kColumnsAtOnce), sums, /*add=*/false);
    f32 = std::min(f32, middle - start);
    bf16 = std::min(bf16, Clock::now() - middle);
  }
  return Seconds(f32) > kClearly * Seconds(bf16);
}

// Multiplies the last rows, fewer than a kernel has: c has no place for more.
void MultiplyRest(int64_t m, int64_t n, int64_t k, const Bf16Block& a, const Bf16Block& b,
                  const RowBlock& c, bool add) {
  std::array<float, kFewestKernelRows * kColumnsAtOnce> all;
  const RowBlock whole{all.data(), kColumnsAtOnce};
  Kernel(kFewestKernelRows, n, k, a, b, whole, /*add=*/false);
  for (int64_t i = 0; i < m; ++i) {
    float* out = c.Rows(i).data;
    const float* row = whole.Rows(i).data;
    for (int64_t j = 0; j < n; ++j) out[j] = add ? out[j] + row[j] : row[j];
  }
}

}  // namespace

bool HasBf16Kernels() {
  static const bool has = HasAvx512Bf16() || HasLibTorchKernel();
  return has;
}

bool Bf16KernelsPay() {
  static const bool pay = HasBf16Kernels() && MeasureBf16Kernels();
  return pay;
}

void Bf16Product(int64_t m, int64_t n, int64_t k, const Bf16Block& a, const Bf16Block& b,
                 const RowBlock& c, bool add) {
  if (HasAmx()) return Bf16ProductWithAmx(m, n, k, a, b, c, add);
  if (HasAvx512Bf16()) return Bf16ProductWithAvx512(m, n, k, a, b, c, add);
  for (int64_t column = 0; column < n; column += kColumnsAtOnce) {
    const int64_t columns = std::min(kColumnsAtOnce, n - column);
    const Bf16Block right = b.Columns(2 * column);
    const RowBlock out = c.Columns(column);
    int64_t row = 0;
    for (const int64_t rows : kKernelRows) {
      for (; row + rows <= m; row += rows) {
        Kernel(rows, columns, k, a.Rows(row), right, out.Rows(row), add);
      }
    }
    if (row < m) MultiplyRest(m - row, columns, k, a.Rows(row), right, out.Rows(row), add);
  }
  at::native::cpublas::brgemm_release();
}

}  // namespace linserve
