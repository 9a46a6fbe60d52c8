#include "attention/blocks/block_convolution.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "attention/landmarks/landmark_attention.h"
#include "attention/products/block_product.h"
#include "attention/rows/aten.h"
#include "attention/rows/spans.h"

namespace linserve {
namespace {

TEST(BlockConvolution, GivesWhatLibTorchsGivesForAnySizes) {
  for (const auto& [length, heads, width, size] : {std::tuple{1, 2, 5, 3},
                                                   {7, 3, 8, 1},
                                                   {40, 2, 64, 65},
                                                   {130, 1, 70, 9},
                                                   {300, 2, 128, 33}}) {
    SCOPED_TRACE(length);
    const int64_t inner = int64_t{heads} * width;
    const at::Tensor rows = at::randn({length, inner});
    const at::Tensor kernel = at::randn({heads, 1, size, 1});
    const at::Tensor before = at::randn({length, inner});
    const at::Tensor out = before.clone();
    const BlockConvolution convolution(kernel);
    constexpr int64_t kStep = 50;
    for (int64_t row = 0; row < length; row += kStep) {
      convolution.Add(BlockOf(rows), length, row, std::min(kStep, length - row), width,
                      BlockOf(out, row));
    }
    const at::Tensor expected =
        before + JoinHeads(ConvolveRows(SplitHeads(rows.unsqueeze(0), heads), kernel)).squeeze(0);
    EXPECT_LT((out - expected).abs().max().item<float>(), 1e-4);
  }
}

TEST(BlockConvolution, HasAKernelForEachColumn) {
  for (const auto& [length, width, size] :
       {std::tuple{1, 5, 3}, {40, 64, 1}, {130, 33, 4}, {7, 16, 9}}) {
    SCOPED_TRACE(length);
    const at::Tensor rows = at::randn({length, width});
    const at::Tensor kernel = at::randn({size, width});
    const at::Tensor bias = at::randn({width});
    const at::Tensor gates = at::randn({length, width});
    const at::Tensor out = at::empty({length, width});
    const ColumnKernels kernels{.weights = kernel.const_data_ptr<float>(),
                                .bias = bias.const_data_ptr<float>(),
                                .size = size,
                                .width = width};
    constexpr int64_t kStep = 50;
    for (int64_t row = 0; row < length; row += kStep) {
      const int64_t count = std::min<int64_t>(kStep, length - row);
      ConvolveColumns(BlockOf(rows, row), row, count, kernels, BlockOf(out, row));
      MultiplyRows(BlockOf(out, row), BlockOf(gates, row), count, width);
    }
    const at::Tensor padded = at::constant_pad_nd(rows.t(), {size - 1, 0});
    const at::Tensor convolved =
        (padded.unfold(1, size, 1) * kernel.t().unsqueeze(1)).sum(-1).t() + bias;
    EXPECT_LT((out - convolved * gates).abs().max().item<float>(), 1e-5);
  }
}

}  // namespace
}  // namespace linserve
