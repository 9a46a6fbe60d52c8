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

}  // namespace
}  // namespace linserve
