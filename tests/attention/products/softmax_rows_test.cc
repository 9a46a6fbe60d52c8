#include "attention/products/softmax_rows.h"

#include <gtest/gtest.h>

#include <limits>
#include <utility>

#include "attention/layouts.h"
#include "attention/products/block_product.h"
#include "attention/rows/aten.h"

namespace linserve {
namespace {

// The parameter is a width: those around the vectors' own are easily got wrong.
class SoftmaxRows : public ::testing::TestWithParam<int64_t> {
 protected:
  int64_t width() const { return GetParam(); }
};

TEST_P(SoftmaxRows, IsTheSoftmaxOfRowsOfAnySize) {
  const at::Tensor rows = (at::randn({5, width() + 3}) * 30).narrow(1, 0, width());
  rows.select(0, 1).add_(1e4);
  if (width() > 1) rows[2][0].fill_(-std::numeric_limits<float>::infinity());  // hidden
  const at::Tensor shares = at::empty({5});
  const at::Tensor expected = at::softmax(rows.to(at::kDouble) * 0.5, -1);
  SoftmaxWeights(BlockOf(rows), 5, width(), 0.5, shares.mutable_data_ptr<float>());
  ScaleRows(BlockOf(rows), 5, width(), shares.const_data_ptr<float>());
  EXPECT_LT(LargestDifference(rows, expected), 1e-6);
}

TEST_P(SoftmaxRows, RoundsWeightsAndNothingBesideThem) {
  const at::Tensor rows = at::randn({21, width()}) * 30;
  const at::Tensor expected = at::softmax(rows.to(at::kDouble) * 0.5, -1);
  const at::Tensor shares = at::empty({21});
  const at::Tensor rounded = at::full({21, width() + 2}, 7, at::kBFloat16);
  SoftmaxWeights(BlockOf(rows), 21, width(), 0.5, shares.mutable_data_ptr<float>(),
                 {rounded.mutable_data_ptr<c10::BFloat16>(), width() + 2});
  const at::Tensor weights = rounded.narrow(1, 0, width()).to(at::kDouble) * shares.unsqueeze(1);
  EXPECT_TRUE(((weights - expected).abs() <= expected / 200 + 1e-9).all().item<bool>());
  EXPECT_TRUE(rounded.narrow(1, width(), 2).eq(7).all().item<bool>());
}

TEST_P(SoftmaxRows, RoundsTheWeightsOfAStepOverColumns) {
  constexpr int64_t kRows = 21;
  const int64_t whole = (width() + 15) / 16 * 16;
  const at::Tensor rows = at::randn({kRows, whole}) * 30;
  const at::Tensor expected = at::softmax(rows.narrow(1, 0, width()).to(at::kDouble) * 0.5, -1);
  const at::Tensor most = at::full({kRows}, std::numeric_limits<float>::lowest());
  const at::Tensor totals = at::zeros({kRows});
  const at::Tensor factors = at::empty({kRows});
  const at::Tensor rounded = at::full({kRows, whole}, 7, at::kBFloat16);
  RowWeights(BlockOf(rows), kRows, width(), 0.5, most.mutable_data_ptr<float>(),
             factors.mutable_data_ptr<float>(), totals.mutable_data_ptr<float>(),
             {rounded.mutable_data_ptr<c10::BFloat16>(), whole});
  const at::Tensor weights = rounded.to(at::kDouble) / totals.unsqueeze(1);
  const at::Tensor difference = (weights.narrow(1, 0, width()) - expected).abs();
  EXPECT_TRUE((difference <= expected / 200 + 1e-9).all().item<bool>());
  EXPECT_TRUE(rounded.narrow(1, width(), whole - width()).eq(0).all().item<bool>());
}

TEST_P(SoftmaxRows, KeepsARunningSoftmaxOfColumns) {
  const at::Tensor all = at::randn({12, width()}) * 10;
  const at::Tensor weights = all.clone();
  const at::Tensor most = at::full({width()}, std::numeric_limits<float>::lowest());
  const at::Tensor factors = at::empty({width()});
  const at::Tensor sums = at::zeros({width()});
  for (const auto& [row, count] : {std::pair<int64_t, int64_t>{0, 5}, {5, 1}, {6, 6}}) {
    ColumnWeights(BlockOf(weights, row), count, width(), most.mutable_data_ptr<float>(),
                  factors.mutable_data_ptr<float>(), sums.mutable_data_ptr<float>());
    weights.narrow(0, 0, row).mul_(factors);
  }
  EXPECT_LT(LargestDifference(weights / sums, at::softmax(all.to(at::kDouble), 0)), 1e-6);
}

TEST_P(SoftmaxRows, KeepsARunningSoftmaxOfRows) {
  constexpr int64_t kRows = 21;
  const int64_t whole = (width() + 15) / 16 * 16;
  const at::Tensor all = at::randn({kRows, 3 * width()}) * 30;
  const at::Tensor most = at::full({kRows}, std::numeric_limits<float>::lowest());
  const at::Tensor totals = at::zeros({kRows});
  const at::Tensor factors = at::empty({kRows});
  const at::Tensor weights = at::empty_like(all);
  for (int64_t step = 0; step < 3; ++step) {
    const at::Tensor part = at::full({kRows, whole}, std::nanf(""));
    part.narrow(1, 0, width()).copy_(all.narrow(1, step * width(), width()));
    RowWeights(BlockOf(part), kRows, width(), 0.5, most.mutable_data_ptr<float>(),
               factors.mutable_data_ptr<float>(), totals.mutable_data_ptr<float>());
    EXPECT_TRUE(part.narrow(1, width(), whole - width()).eq(0).all().item<bool>());
    weights.narrow(1, 0, step * width()).mul_(factors.unsqueeze(1));
    weights.narrow(1, step * width(), width()).copy_(part.narrow(1, 0, width()));
  }
  const at::Tensor expected = at::softmax(all.to(at::kDouble) * 0.5, -1);
  EXPECT_LT(LargestDifference(weights / totals.unsqueeze(1), expected), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Widths, SoftmaxRows, ::testing::Values(1, 3, 15, 16, 17, 32, 100, 256),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace linserve
