#include "attention/linformer/projected_slots.h"

#include <gtest/gtest.h>

#include "attention/layouts.h"
#include "attention/linformer/linformer_attention.h"
#include "attention/rows/aten.h"

namespace linserve {
namespace {

TEST(AddLastRow, EqualsARowThatWasThereFromTheStart) {
  const at::Tensor projection = at::randn({6, 3});
  const at::Tensor last = at::randn({5});
  const at::Tensor rows = at::randn({4 + 1 + 5, 5});
  at::Tensor slots = ProjectLength(rows, projection, Packed({4, 1, 5}));
  AddLastRow(slots, last, projection, Packed({4, 1, 5}));
  const at::Tensor row = last.view({1, 5});
  const at::Tensor longer =
      at::cat({rows.narrow(0, 0, 4), row, rows.narrow(0, 4, 1), row, rows.narrow(0, 5, 5), row});
  EXPECT_LT(LargestDifference(slots, ProjectLength(longer, projection, Packed({5, 2, 6}))), 1e-5);
}

TEST(AddLastRow, TakesTheRowOfTheProjectionAfterTheSequence) {
  at::Tensor slots = at::zeros({2, 1, 2});
  AddLastRow(slots, at::tensor({1.0f, 10.0f}), Matrix({{3}, {4}, {5}}), Packed({1, 2}));
  EXPECT_EQ(LargestDifference(slots, Matrix({{4, 40}, {5, 50}}).view({2, 1, 2})), 0);
}

TEST(RereadSlots, TakesFeatureFirstNumbersForSlotFirstOnes) {
  // Two sequences, two slots, width 2: sequence 0 holds 0 to 3 slot by slot, sequence 1 4 to 7.
  const at::Tensor slots = at::arange(8, at::kFloat).view({2, 2, 2});
  // The memory holds, feature by feature, 0 2 1 3 and 4 6 5 7, which is read as [slot, sequence,
  // feature].
  const at::Tensor first = Matrix({{0, 2}, {4, 6}});   // of slots 0 and 1: sequence 0
  const at::Tensor second = Matrix({{1, 3}, {5, 7}});  // sequence 1
  EXPECT_EQ(LargestDifference(RereadSlots(slots), at::stack({first, second})), 0);
}

TEST(RereadSlots, LeavesASingleSlotOfASingleSequenceAsItIs) {
  const at::Tensor slots = at::randn({1, 1, 6});
  EXPECT_EQ(LargestDifference(RereadSlots(slots), slots), 0);
}

TEST(AppendZeroSlot, AddsOneThatAMaskLeavesOpen) {
  const at::Tensor slots = AppendZeroSlot(at::ones({2, 3, 4}));
  EXPECT_EQ(slots.sizes().vec(), (std::vector<int64_t>{2, 4, 4}));
  EXPECT_EQ(slots.select(1, 3).abs().sum().item<float>(), 0);
  const at::Tensor mask = AppendOpenSlot(at::full({2, 1, 5, 3}, -1e30f));
  EXPECT_EQ(mask.sizes().vec(), (std::vector<int64_t>{2, 1, 5, 4}));
  EXPECT_EQ(mask.select(3, 3).abs().sum().item<float>(), 0);
}

}  // namespace
}  // namespace linserve
