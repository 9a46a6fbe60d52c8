#include <gtest/gtest.h>

#include <array>

#include "attention/layouts.h"
#include "attention/products/amx_product.h"
#include "attention/products/avx512_product.h"
#include "attention/products/block_product.h"
#include "attention/products/kernel_rows.h"
#include "attention/rows/aten.h"

namespace linserve {
namespace {

// Those around a tile's 6 rows and 64 columns, and a vector's 16, are easily got wrong; and of AMX
// those around 16 and 32.
constexpr std::array<std::array<int64_t, 3>, 12> kProducts = {{{1, 1, 2},
                                                               {2, 3, 4},
                                                               {5, 15, 10},
                                                               {6, 16, 32},
                                                               {7, 17, 6},
                                                               {12, 47, 64},
                                                               {13, 64, 16},
                                                               {17, 65, 8},
                                                               {128, 100, 384},
                                                               {40, 192, 30},
                                                               {32, 32, 64},
                                                               {33, 96, 98}}};

// Multiplies a [m, k] · b [k, n] into the middle of wider rows by `multiply`, and expects the sums
// of F64 there and what was around them.
template <typename Multiply>
void ExpectSums(const at::Tensor& a, const at::Tensor& b, const Multiply& multiply) {
  const int64_t m = a.size(0);
  const int64_t n = b.size(1);
  SCOPED_TRACE(testing::Message() << m << " rows of " << a.size(1) << " to " << n);
  const at::Tensor sums = at::mm(a.to(at::kDouble), b.to(at::kDouble));
  for (const bool add : {false, true}) {
    const at::Tensor whole = at::randn({m + 1, n + 5});
    const at::Tensor expected = whole.to(at::kDouble);
    expected.narrow(0, 0, m).narrow(1, 2, n).mul_(add ? 1 : 0).add_(sums);
    multiply(BlockOf(whole.narrow(1, 2, n)), add);
    EXPECT_LT(LargestDifference(whole, expected), 1e-4);
  }
}

TEST(Avx512Product, IsTheProductInF32OfAnySizesAndStrides) {
  if (!HasAvx512()) GTEST_SKIP() << "this CPU has no AVX-512";
  for (const auto& [m, n, k] : kProducts) {
    const at::Tensor a = at::randn({m, k + 2}).narrow(1, 1, k - 1);
    const at::Tensor b = at::randn({k - 1, n + 1}).narrow(1, 1, n);
    ExpectSums(a, b, [&, m = m, n = n, k = k](const RowBlock& out, bool add) {
      BlockProductWithAvx512(m, n, k - 1, BlockOf(a), BlockOf(b), out, add);
    });
  }
}

// Calls `product`, Bf16Product() by whatever means.
template <typename Product>
void ExpectProductsInBf16(const Product& product) {
  for (const auto& [m, n, k] : kProducts) {
    const at::Tensor rows = at::randn({WholeKernelRows(m), k + 6}).to(at::kBFloat16);
    const at::Tensor a = rows.narrow(0, 0, m).narrow(1, 2, k);
    const at::Tensor b = at::randn({k, n}).to(at::kBFloat16);
    const at::Tensor pairs = b.view({k / 2, 2, n}).transpose(1, 2).contiguous();
    ExpectSums(a, b, [&, m = m, n = n, k = k](const RowBlock& out, bool add) {
      product(m, n, k, Bf16Block{a.data_ptr<c10::BFloat16>(), k + 6},
              Bf16Block{pairs.data_ptr<c10::BFloat16>(), 2 * n}, out, add);
    });
  }
}

TEST(Avx512Product, IsTheProductInBf16OfAnySizesAndStrides) {
  if (!HasAvx512Bf16()) GTEST_SKIP() << "this CPU has no AVX512-BF16";
  ExpectProductsInBf16(Bf16ProductWithAvx512);
}

TEST(AmxProduct, IsTheProductInBf16OfAnySizesAndStrides) {
  if (!HasAmx()) GTEST_SKIP() << "this CPU has no AMX";
  ExpectProductsInBf16(Bf16ProductWithAmx);
  const AmxScope scope;
  ExpectProductsInBf16(Bf16ProductWithAmx);
}

}  // namespace
}  // namespace linserve
