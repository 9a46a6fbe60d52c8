#include "attention/products/bf16_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "attention/products/block_product.h"
#include "attention/rows/aten.h"

namespace linserve {
namespace {

TEST(ToBf16, RoundsRowsOfAnyWidthToTheNearestNumbers) {
  const auto inf = std::numeric_limits<float>::infinity();
  for (const int64_t width : {1, 15, 16, 17, 64, 100}) {
    SCOPED_TRACE(width);
    const at::Tensor rows = at::randn({3, width + 1}).narrow(1, 1, width);
    rows[0][0].fill_(inf);
    rows[1].fill_(std::nanf(""));
    rows[2][width - 1].fill_(std::numeric_limits<float>::max());
    const at::Tensor out = at::zeros({3, width + 2}, at::kBFloat16);
    ToBf16(BlockOf(rows), 3, width, {out.data_ptr<c10::BFloat16>(), width + 2});
    const at::Tensor expected = at::constant_pad_nd(rows.to(at::kBFloat16), {0, 2});
    EXPECT_TRUE(at::allclose(out, expected, 0, 0, /*equal_nan=*/true));
  }
}

TEST(ToBf16Pairs, LaysRowsOfAnyNumberAndWidthOutInPairs) {
  for (const int64_t width : {1, 15, 16, 17, 64, 100}) {
    for (const int64_t count : {1, 2, 7, 8}) {
      SCOPED_TRACE(testing::Message() << count << " rows of " << width);
      const at::Tensor rows = at::randn({count, width + 1}).narrow(1, 1, width);
      rows[0][0].fill_(std::numeric_limits<float>::infinity());
      rows[count - 1][width - 1].fill_(std::numeric_limits<float>::max());
      const at::Tensor out = at::full({5, 2 * width + 4}, 7, at::kBFloat16);
      ToBf16Pairs(BlockOf(rows), count, width, 10, {out.data_ptr<c10::BFloat16>(), 2 * width + 4});
      const at::Tensor padded = at::constant_pad_nd(rows.to(at::kBFloat16), {0, 0, 0, 10 - count});
      const at::Tensor pairs = padded.view({5, 2, width}).transpose(1, 2).reshape({5, 2 * width});
      EXPECT_TRUE(at::equal(out.narrow(1, 0, 2 * width), pairs));
      EXPECT_TRUE(out.narrow(1, 2 * width, 4).eq(7).all().item<bool>());
    }
  }
}

}  // namespace
}  // namespace linserve
