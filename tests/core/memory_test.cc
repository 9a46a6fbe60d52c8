#include "core/memory.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "core/test_files.h"

namespace linserve {
namespace {

TEST(Memory, IsWhatThisProcessMayUse) {
  EXPECT_GT(MemoryBytes(), int64_t{64} << 20);
  EXPECT_LT(MemoryBytes(), int64_t{1} << 50);
}

class GroupMemory : public testing::Test {
 protected:
  void Limit(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(dir_.File(file)).parent_path());
    WriteAll(dir_.File(file), text + "\n");
  }
  int64_t Limit(const std::string& groups) const {
    return GroupMemoryLimit(groups, dir_.File("."));
  }

  TempDir dir_;
};

TEST_F(GroupMemory, IsTheLeastOfAllGroupsThatHoldTheProcess) {
  Limit("memory.max", "max");
  Limit("pods/memory.max", "3000");
  Limit("pods/one/memory.max", "max");
  Limit("pods/two/memory.max", "2000");
  EXPECT_EQ(Limit("0::/\n"), INT64_MAX);
  EXPECT_EQ(Limit("0::/pods/one\n"), 3000);
  EXPECT_EQ(Limit("0::/pods/two\n"), 2000);
}

TEST_F(GroupMemory, IsReadOfVersionOneToo) {
  Limit("memory/memory.limit_in_bytes", "5000");
  Limit("memory/docker/memory.limit_in_bytes", "4000");
  Limit("memory.max", "1000");  // not of a hierarchy that the process is in
  EXPECT_EQ(Limit("5:cpu,cpuacct:/docker\n4:memory:/docker\n"), 4000);
}

TEST_F(GroupMemory, IsTheRootsWhereThePathIsAnotherNamespaces) {
  Limit("memory.max", "700");
  EXPECT_EQ(Limit("0::/../../kubepods/pod1/abc\n0::/kubepods/pod1/abc\n"), 700);
}

TEST_F(GroupMemory, OfNoGroupIsNoLimit) {
  for (const char* groups : {"", "\n", "0:", "memory", "1:memory:"}) {
    EXPECT_EQ(Limit(groups), INT64_MAX) << groups;
  }
}

TEST(FormatBytes, ChoosesTheUnitThatFits) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1536), "1.5 KiB");
  EXPECT_EQ(FormatBytes(3.0 * (1 << 30)), "3.0 GiB");
}

}  // namespace
}  // namespace linserve
