#include "attention/rows/layout_part.h"

#include <gtest/gtest.h>

#include "attention/layouts.h"

namespace linserve {
namespace {

TEST(PartOf, IsALayoutOfSomeSequencesAlone) {
  const LayoutPart packed = PartOf(Packed({3, 1, 2, 5}), 1, 2);
  EXPECT_EQ(packed.begin, 3);
  EXPECT_EQ(packed.layout.rows, 3);
  EXPECT_EQ(packed.layout.starts, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(packed.layout.lengths, (std::vector<int64_t>{1, 2}));
  const LayoutPart last = PartOf(Padded({3, 1, 2}, 4), 2, 1);
  EXPECT_EQ(last.begin, 8);
  EXPECT_EQ(last.layout.rows, 4);
  EXPECT_EQ(last.layout.padded_length, 4);
}

}  // namespace
}  // namespace linserve
