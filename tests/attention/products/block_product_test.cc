#include "attention/products/block_product.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "attention/layouts.h"
#include "attention/rows/aten.h"

namespace linserve {
namespace {

TEST(BlockProduct, IsTheProductOfAnySizesAndStrides) {
  for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{
           {1, 1, 1}, {2, 3, 4}, {16, 32, 16}, {17, 33, 15}, {128, 32, 300}, {5, 100, 47}}) {
    const at::Tensor a = at::randn({m, k + 2}).narrow(1, 1, k);
    const at::Tensor b = at::randn({k, n + 1}).narrow(1, 0, n);
    const at::Tensor c = at::randn({m, n + 5}).narrow(1, 2, n);
    const at::Tensor before = c.clone();
    const at::Tensor product = at::mm(a.to(at::kDouble), b.to(at::kDouble));
    BlockProduct(m, n, k, BlockOf(a), BlockOf(b), BlockOf(c), /*add=*/true);
    EXPECT_LT(LargestDifference(c, before + product), 1e-4);
    BlockProduct(m, n, k, BlockOf(a), BlockOf(b), BlockOf(c), /*add=*/false);
    EXPECT_LT(LargestDifference(c, product), 1e-4);
  }
}

TEST(ForBlocks, VisitsEveryRowOnceInBlocksOfAtMostTheLargest) {
  for (const int64_t rows : {1, 15, 16, 127, 128, 129, 1000}) {
    std::vector<std::atomic<int>> visits(static_cast<size_t>(rows));
    ForBlocks(rows, 8, [&](int64_t begin, int64_t count, float* scratch) {
      EXPECT_LE(count, kBlockRows);
      scratch[7] = 1;
      for (int64_t row = begin; row < begin + count; ++row) ++visits[static_cast<size_t>(row)];
    });
    for (const auto& count : visits) EXPECT_EQ(count, 1);
  }
}

TEST(ForBlocks, IsNothingForNoRows) {
  ForBlocks(0, 0, [](int64_t, int64_t, float*) { FAIL(); });
}

TEST(RowSlices, GivesEachSliceInOrderAsItWasFilled) {
  RowSlices slices;
  for (const int64_t rows : {1, 130, 2000}) {
    int64_t next = 0;
    slices.ForEach(
        rows, 3, 1,
        [](int64_t row, int64_t count, const RowBlock& out, float*) {
          for (int64_t i = 0; i < count; ++i) {
            std::fill_n(out.Rows(i).data, 3, static_cast<float>(row + i));
          }
        },
        [&](int64_t row, int64_t count, const RowBlock& slice) {
          EXPECT_EQ(row, next);
          next += count;
          for (int64_t i = 0; i < count; ++i) {
            EXPECT_EQ(slice.Rows(i).data[2], static_cast<float>(row + i));
          }
        });
    EXPECT_EQ(next, rows);
  }
}

}  // namespace
}  // namespace linserve
