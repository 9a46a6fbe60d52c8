#include "attention/products/int8_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "attention/layouts.h"
#include "attention/products/block_product.h"
#include "attention/rows/aten.h"

namespace linserve {
namespace {

// The parameter is a width: those around the vectors' own are easily got wrong.
class Int8Rows : public ::testing::TestWithParam<int64_t> {
 protected:
  int64_t width() const { return GetParam(); }
};

TEST_P(Int8Rows, AreBytesBetweenEachRowsSmallestAndLargestNumber) {
  constexpr int64_t kRows = 7;
  const at::Tensor rows = at::randn({kRows, width()});
  rows[2].fill_(0);
  rows[3][width() - 1].fill_(std::nanf(""));
  rows[4][0].fill_(-std::numeric_limits<float>::infinity());
  rows[5].abs_().add_(3);
  rows[6].fill_(-7);
  std::vector<uint8_t> bytes(static_cast<size_t>(kRows * width()));
  std::vector<float> steps(kRows);
  std::vector<float> lowest(kRows);
  ToInt8(BlockOf(rows), kRows, width(), {bytes.data(), width()}, {steps.data(), lowest.data()});
  for (int64_t i = 0; i < kRows; ++i) {
    const float step = steps[static_cast<size_t>(i)];
    const float least = lowest[static_cast<size_t>(i)];
    if (i == 3 || i == 4) {
      EXPECT_TRUE(std::isnan(step)) << i;
      continue;
    }
    EXPECT_EQ(least, rows[i].min().item<float>());
    EXPECT_EQ(step, (rows[i].max() - rows[i].min()).item<float>() / 255);
    for (int64_t j = 0; j < width(); ++j) {
      const auto byte = static_cast<float>(bytes[static_cast<size_t>(i * width() + j)]);
      EXPECT_NEAR(least + byte * step, rows[i][j].item<float>(), 0.501 * step + 1e-6)
          << i << ", " << j;
    }
  }
}

TEST_P(Int8Rows, AreNumbersAgainByTheScalesOfRowsAndColumns) {
  constexpr int64_t kRows = 5;
  const at::Tensor sums = at::randint(-1'000'000, 1'000'000, {kRows, width()}, at::kInt);
  const at::Tensor of_rows = at::rand({2, kRows});
  const at::Tensor of_columns = at::rand({3, width()});
  const at::Tensor before = at::randn({kRows, width() + 3}).narrow(1, 0, width());
  const auto wide = [](const at::Tensor& tensor) { return tensor.to(at::kDouble); };
  const at::Tensor made = wide(sums) * wide(of_columns[0]) * wide(of_rows[0]).unsqueeze(1) +
                          wide(of_columns[1]) * wide(of_rows[1]).unsqueeze(1) + wide(of_columns[2]);
  const ColumnScales columns{of_columns[0].const_data_ptr<float>(),
                             of_columns[1].const_data_ptr<float>(),
                             of_columns[2].const_data_ptr<float>()};
  for (const bool add : {false, true}) {
    const at::Tensor out = before.clone();
    FromInt8(sums.const_data_ptr<int32_t>(), width(), kRows, width(),
             {of_rows[0].data_ptr<float>(), of_rows[1].data_ptr<float>()}, columns, BlockOf(out),
             add);
    const at::Tensor expected = add ? made + wide(before) : made;
    EXPECT_LT(((wide(out) - expected).abs() / (1 + expected.abs())).max().item<double>(), 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(Widths, Int8Rows, ::testing::Values(1, 15, 16, 17, 33, 64, 80, 100, 384),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace linserve
