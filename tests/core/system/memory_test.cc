#include "core/system/memory.h"

#include <gtest/gtest.h>

namespace linserve {
namespace {

TEST(Memory, IsWhatThisProcessMayUse) {
  EXPECT_GT(MemoryBytes(), int64_t{64} << 20);
  EXPECT_LT(MemoryBytes(), int64_t{1} << 50);
}

TEST(FormatBytes, ChoosesTheUnitThatFits) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1536), "1.5 KiB");
  EXPECT_EQ(FormatBytes(3.0 * (1 << 30)), "3.0 GiB");
}

}  // namespace
}  // namespace linserve
