#include "core/sequence/pooling.h"

#include <gtest/gtest.h>

namespace linserve {
namespace {

TEST(Pooling, HasANameThatLeadsBackToIt) {
  for (Pooling pooling :
       {Pooling::kNone, Pooling::kMean, Pooling::kCls, Pooling::kLast, Pooling::kMax}) {
    EXPECT_EQ(PoolingFromName(Name(pooling)), pooling) << Name(pooling);
  }
  EXPECT_EQ(Name(Pooling::kCls), "cls");
  EXPECT_EQ(PoolingFromName("median"), std::nullopt);
}

}  // namespace
}  // namespace linserve
