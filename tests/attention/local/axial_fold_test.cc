#include "attention/local/axial_fold.h"

#include <gtest/gtest.h>

#include "attention/layouts.h"
#include "attention/rows/aten.h"

namespace linserve {
namespace {

TEST(Fold, PutsEveryWidthThRowIntoAColumn) {
  const at::Tensor x = at::arange(6).view({1, 6, 1});
  const auto columns = ColumnsOf(6, 2);
  ASSERT_EQ(columns.size(), 1u);
  EXPECT_EQ(
      LargestDifference(Fold(x, 2, columns[0]), at::tensor({0, 2, 4, 1, 3, 5}).view({1, 2, 3, 1})),
      0);
}

TEST(Fold, MakesTwoGroupsOfColumnsIfTheLastRowIsNotFull) {
  const at::Tensor x = at::arange(7).view({1, 7});
  const auto columns = ColumnsOf(7, 3);
  ASSERT_EQ(columns.size(), 2u);
  EXPECT_EQ(LargestDifference(Fold(x, 3, columns[0]), at::tensor({0, 3, 6}).view({1, 1, 3})), 0);
  EXPECT_EQ(LargestDifference(Fold(x, 3, columns[1]), at::tensor({1, 4, 2, 5}).view({1, 2, 2})), 0);
}

TEST(Fold, OfASequenceShorterThanARowIsOneRow) {
  const auto columns = ColumnsOf(2, 5);
  ASSERT_EQ(columns.size(), 1u);
  EXPECT_EQ(columns[0].count, 2);
  EXPECT_EQ(columns[0].rows, 1);
}

}  // namespace
}  // namespace linserve
