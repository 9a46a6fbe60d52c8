#include "core/sequence/batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace linserve {
namespace {

using testing::ElementsAre;

TEST(Padding, HasANameForEach) {
  EXPECT_EQ(Name(Padding::kPacked), "packed");
  EXPECT_EQ(Name(Padding::kBucket), "bucket");
  EXPECT_EQ(Name(Padding::kFixed), "fixed");
  EXPECT_EQ(Name(Padding::kZeros), "zeros");
}

TEST(CloseReason, HasANameForEach) {
  EXPECT_EQ(Name(CloseReason::kFull), "full");
  EXPECT_EQ(Name(CloseReason::kDelay), "delay");
  EXPECT_EQ(Name(CloseReason::kIdle), "idle");
  EXPECT_EQ(Name(CloseReason::kLength), "length");
  EXPECT_EQ(Name(CloseReason::kDrain), "drain");
}

TEST(Crop, TakesTheRowsOfOneSequenceAndSharesTheirBytes) {
  const AxisLayout layout = {{0, 2}, {1, 2}, 4, 2};
  const Tensor rows = Tensor::FromFloats({4, 2}, {1, 2, 0, 0, 3, 4, 5, 6});
  EXPECT_THAT(Crop(layout, rows, 0).shape(), ElementsAre(1, 2));
  const Tensor second = Crop(layout, rows, 1);
  EXPECT_THAT(second.shape(), ElementsAre(2, 2));
  EXPECT_EQ(second.bytes(), rows.bytes() + 4 * sizeof(float));
  EXPECT_EQ(second.data<float>()[3], 6);
}

}  // namespace
}  // namespace linserve
