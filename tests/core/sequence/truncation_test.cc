#include "core/sequence/truncation.h"

#include <gtest/gtest.h>

namespace linserve {
namespace {

TEST(Truncation, HasANameThatLeadsBackToIt) {
  for (Truncation truncation : {Truncation::kNone, Truncation::kLeft, Truncation::kRight}) {
    EXPECT_EQ(TruncationFromName(Name(truncation)), truncation) << Name(truncation);
  }
  EXPECT_EQ(Name(Truncation::kRight), "right");
  EXPECT_EQ(TruncationFromName("middle"), std::nullopt);
}

}  // namespace
}  // namespace linserve
