#include "attention/products/int8_product.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "attention/layouts.h"
#include "attention/products/amx_product.h"
#include "attention/products/avx512_product.h"
#include "attention/products/block_product.h"
#include "attention/products/int8_avx2.h"
#include "attention/products/kernel_rows.h"
#include "attention/rows/aten.h"

namespace linserve {
namespace {

struct Kernel {
  const char* name;
  bool (*exists)();
  decltype(&Int8Product) product;
};

class Int8ProductTest : public ::testing::TestWithParam<Kernel> {
 protected:
  void SetUp() override {
    if (!GetParam().exists()) GTEST_SKIP() << "this CPU has no such kernel";
  }

  // Multiplies random bytes, among them the largest, with the scales given as [3, n] and [2,
  // count].
  struct Case {
    int64_t count, n, k;
    at::Tensor bytes = at::randint(0, 256, {WholeKernelRows(count), k}, at::kByte);
    at::Tensor columns = at::randint(-127, 128, {k, n}, at::kChar);
    at::Tensor of_rows = at::zeros({2, count});
    at::Tensor of_columns = at::zeros({3, n});

    void Multiply(const at::Tensor& out, bool add) {
      const at::Tensor groups =
          columns.view({k / kInt8Group, kInt8Group, n}).transpose(1, 2).contiguous();
      const auto column = [&](int i) { return of_columns[i].const_data_ptr<float>(); };
      GetParam().product({.count = count,
                          .n = n,
                          .k = k,
                          .rows = {bytes.data_ptr<uint8_t>(), k},
                          .of_rows = {of_rows[0].data_ptr<float>(), of_rows[1].data_ptr<float>()},
                          .columns = groups.const_data_ptr<int8_t>(),
                          .of_columns = {column(0), column(1), column(2)}},
                         BlockOf(out), add);
    }
    at::Tensor Sums() const {
      return at::mm(bytes.narrow(0, 0, count).to(at::kDouble), columns.to(at::kDouble));
    }
  };
};

constexpr std::array<std::array<int64_t, 3>, 9> kInt8Sizes = {{{1, 1, 4},
                                                               {2, 3, 8},
                                                               {5, 64, 256},
                                                               {6, 12, 20},
                                                               {7, 50, 32},
                                                               {13, 80, 64},
                                                               {17, 33, 100},
                                                               {128, 64, 1536},
                                                               {3, 7, kMostInt8Depth}}};

TEST_P(Int8ProductTest, SumsExactly) {
  for (const auto& [count, n, k] : kInt8Sizes) {
    SCOPED_TRACE(testing::Message() << count << " rows of " << k << " to " << n);
    Case of{count, n, k};
    of.bytes[0].fill_(UINT8_MAX);
    of.columns.select(1, 0).fill_(INT8_MAX);
    of.of_rows[0].fill_(1);
    of.of_columns[0].fill_(1);
    const at::Tensor out = at::full({count, n}, -1.0F);
    of.Multiply(out, /*add=*/false);
    EXPECT_TRUE(at::equal(out, of.Sums().to(at::kFloat)));
  }
}

TEST_P(Int8ProductTest, ScalesSumsByRowsAndColumns) {
  const auto wide = [](const at::Tensor& tensor) { return tensor.to(at::kDouble); };
  for (const auto& [count, n, k] : kInt8Sizes) {
    SCOPED_TRACE(testing::Message() << count << " rows of " << k << " to " << n);
    Case of{count, n, k};
    of.of_rows.uniform_();
    of.of_columns.normal_();
    const at::Tensor made = of.Sums() * wide(of.of_columns[0]) * wide(of.of_rows[0]).unsqueeze(1) +
                            wide(of.of_columns[1]) * wide(of.of_rows[1]).unsqueeze(1) +
                            wide(of.of_columns[2]);
    for (const bool add : {false, true}) {
      // What stands beside the product's columns stays.
      const at::Tensor whole = at::randn({count + 1, n + 3});
      const at::Tensor expected = wide(whole);
      expected.narrow(0, 0, count).narrow(1, 0, n).mul_(add ? 1 : 0).add_(made);
      of.Multiply(whole.narrow(1, 0, n), add);
      EXPECT_LT(((wide(whole) - expected).abs() / (1 + expected.abs())).max().item<double>(), 1e-5);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, Int8ProductTest,
                         ::testing::Values(Kernel{"Chosen", HasInt8Kernels, Int8Product},
                                           Kernel{"LibTorch", HasLibTorchInt8,
                                                  Int8ProductWithLibTorch},
                                           Kernel{"Amx", HasAmx, Int8ProductWithAmx},
                                           Kernel{"Vnni", HasAvx512Vnni, Int8ProductWithAvx512},
                                           Kernel{"Avx2", HasAvx2, Int8ProductWithAvx2}),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace linserve
