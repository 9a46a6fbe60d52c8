#include "attention/products/int8_product.h"

#include <ATen/native/CPUBlas.h>

#include <algorithm>
#include <array>
#include <vector>

#include "attention/products/amx_product.h"
#include "attention/products/avx512_product.h"
#include "attention/products/int8_avx2.h"
#include "attention/products/kernel_rows.h"

namespace linserve {
namespace {

void Kernel(int64_t m, int64_t n, int64_t k, const ByteBlock& a, const int8_t* b, int32_t* c) {
  at::native::cpublas::brgemm(m, n, k, a.stride, n, n, /*add_C=*/false, a.data,
                              reinterpret_cast<const signed char*>(b), c, /*is_vnni=*/true);
}

// Tries LibTorch's kernel, whose sums of two products are cut to 16 bits where there is AVX2 alone.
bool TryKernel() {
  constexpr int64_t kTried = 16;
  std::array<uint8_t, kFewestKernelRows * kInt8Group> a{};
  std::array<int8_t, kTried * kInt8Group> b{};
  std::array<int32_t, kFewestKernelRows * kTried> c{};
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

}  // namespace

bool HasInt8Kernels() { return HasLibTorchInt8() || HasAvx512Vnni() || HasAvx2(); }

bool HasLibTorchInt8() {
  static const bool has = TryKernel();
  return has;
}

void Int8ProductWithLibTorch(const Int8Operands& operands, const RowBlock& out, bool add) {
  static thread_local std::vector<int32_t> sums;
  const auto& [count, n, k, rows, of_rows, columns, of_columns] = operands;
  const int64_t padded = WholeKernelRows(count);
  sums.resize(std::max(sums.size(), static_cast<size_t>(padded * n)));
  int64_t row = 0;
  for (const int64_t some : kKernelRows) {
    for (; row + some <= padded; row += some) {
      Kernel(some, n, k, rows.Rows(row), columns, sums.data() + row * n);
    }
  }
  at::native::cpublas::brgemm_release();
  FromInt8(sums.data(), n, count, n, of_rows, of_columns, out, add);
}

void Int8Product(const Int8Operands& operands, const RowBlock& out, bool add) {
  static const auto product = HasAmx()            ? Int8ProductWithAmx
                              : HasAvx512Vnni()   ? Int8ProductWithAvx512
                              : HasLibTorchInt8() ? Int8ProductWithLibTorch
                                                  : Int8ProductWithAvx2;
  product(operands, out, add);
}

}  // namespace linserve
