#include "core/tensor/stacking.h"

#include <gmock/gmock.h>

#include "support/test_tensors.h"

namespace linserve {
namespace {

TEST(Stack, FillsUpWithZeros) {
  const Tensor one = Tensor::FromFloats({1, 2}, {1, 2});
  const Tensor two = Tensor::FromFloats({2, 2}, {3, 4, 5, 6});
  const Tensor stacked = Stack({&one, &two}, 0);
  EXPECT_EQ(stacked.shape(), (Shape{2, 2, 2}));
  EXPECT_THAT(Values(stacked), ::testing::ElementsAre(1, 2, 0, 0, 3, 4, 5, 6));
}

TEST(Stack, IsAtLeastAsLongAsAsked) {
  const Tensor one = Tensor::FromFloats({1}, {1});
  EXPECT_THAT(Values(Stack({&one}, 3)), ::testing::ElementsAre(1, 0, 0));
}

TEST(Stack, SharesPartsThatLieOneAfterAnother) {
  const Tensor whole = Tensor::FromFloats({3, 2}, {1, 2, 3, 4, 5, 6});
  const Tensor a = whole.Rows(0, 1);
  const Tensor b = whole.Rows(1, 2);
  const Tensor c = whole.Rows(2, 3);
  const Tensor stacked = Stack({&a, &b, &c}, 0);
  EXPECT_EQ(stacked.bytes(), whole.bytes());
  EXPECT_EQ(stacked.shape(), (Shape{3, 1, 2}));
  EXPECT_THAT(Values(Stack({&a, &c}, 0)), ::testing::ElementsAre(1, 2, 5, 6));
  EXPECT_THAT(Values(Stack({&b, &a}, 0)), ::testing::ElementsAre(3, 4, 1, 2));
}

TEST(Stack, CopiesPartsOfDifferentLengthThoughTheyAdjoin) {
  const Tensor whole = Tensor::FromFloats({3, 1}, {1, 2, 3});
  const Tensor a = whole.Rows(0, 1);
  const Tensor b = whole.Rows(1, 3);
  EXPECT_THAT(Values(Stack({&a, &b}, 0)), ::testing::ElementsAre(1, 0, 2, 3));
}

}  // namespace
}  // namespace linserve
