#include "core/system/memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <vector>

namespace linserve {
namespace {

TEST(Memory, IsWhatThisProcessMayUse) {
  EXPECT_GT(MemoryBytes(), int64_t{64} << 20);
  EXPECT_LT(MemoryBytes(), int64_t{1} << 50);
}

TEST(Memory, OfThePastIsRemembered) {
  const int64_t before = PeakResidentBytes();
  EXPECT_GT(before, int64_t{1} << 20);
  // A process grows to what it writes, and its peak stays when that is freed.
  { std::vector<char> written(size_t{256} << 20, 1); }
  EXPECT_GE(PeakResidentBytes(), std::max(before, int64_t{256} << 20));
}

// Returns the bytes of files that this process has in its memory.
int64_t FileBytes() {
  std::ifstream status("/proc/self/statm");
  int64_t size = 0;
  int64_t resident = 0;
  int64_t shared = 0;
  status >> size >> resident >> shared;
  return shared * sysconf(_SC_PAGESIZE);
}

TEST(Memory, OfCodeIsGivenBackAndComesBackAsItRuns) {
  const int64_t before = FileBytes();
  GiveBackCode();
  EXPECT_LT(FileBytes(), before / 2);
  EXPECT_GT(MemoryBytes(), 0);
}

TEST(FormatBytes, ChoosesTheUnitThatFits) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1536), "1.5 KiB");
  EXPECT_EQ(FormatBytes(3.0 * (1 << 30)), "3.0 GiB");
}

}  // namespace
}  // namespace linserve
