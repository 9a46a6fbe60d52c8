#include "core/system/control_groups.h"

#include <filesystem>

#include "support/test_files.h"

namespace linserve {
namespace {

constexpr double kNoQuota = GroupLimits().processors;

// Makes trees as they are below /sys/fs/cgroup.
class ControlGroups : public testing::Test {
 protected:
  void Write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(dir_.File(file)).parent_path());
    WriteAll(dir_.File(file), text + "\n");
  }
  int64_t Memory(const std::string& groups) const {
    return LimitsOf(groups, dir_.File(".")).memory_bytes;
  }
  double Processors(const std::string& groups) const {
    return LimitsOf(groups, dir_.File(".")).processors;
  }

  TempDir dir_;
};

TEST_F(ControlGroups, LimitMemoryByTheLeastOfAllThatHoldTheProcess) {
  Write("memory.max", "max");
  Write("pods/memory.max", "3000");
  Write("pods/one/memory.max", "max");
  Write("pods/two/memory.max", "2000");
  EXPECT_EQ(Memory("0::/\n"), INT64_MAX);
  EXPECT_EQ(Memory("0::/pods/one\n"), 3000);
  EXPECT_EQ(Memory("0::/pods/two\n"), 2000);
}

TEST_F(ControlGroups, LimitProcessorsByTheLeastOfAllThatHoldTheProcess) {
  Write("cpu.max", "max 100000");
  Write("pods/cpu.max", "150000 100000");
  Write("pods/one/cpu.max", "max 100000");
  Write("pods/two/cpu.max", "25000 50000");
  Write("pods/two/inner/cpu.max", "400000 100000");
  EXPECT_EQ(Processors("0::/\n"), kNoQuota);
  EXPECT_EQ(Processors("0::/pods/one\n"), 1.5);
  EXPECT_EQ(Processors("0::/pods/two/inner\n"), 0.5);
}

TEST_F(ControlGroups, OfAUnitOfSystemdAreItsSlicesToo) {
  Write("system.slice/cpu.max", "800000 100000");
  Write("system.slice/linserve.service/cpu.max", "50000 100000");  // CPUQuota=50%
  Write("system.slice/linserve.service/memory.max", "4000");       // MemoryMax=
  EXPECT_EQ(Processors("0::/system.slice/linserve.service\n"), 0.5);
  EXPECT_EQ(Memory("0::/system.slice/linserve.service\n"), 4000);
}

TEST_F(ControlGroups, AreReadOfVersionOneToo) {
  Write("memory/memory.limit_in_bytes", "9223372036854771712");  // as the kernel says none
  Write("memory/docker/memory.limit_in_bytes", "4000");
  Write("memory.max", "1000");  // this limit is not of a hierarchy that the process is in
  Write("cpu/cpu.cfs_quota_us", "-1");
  Write("cpu/cpu.cfs_period_us", "100000");
  Write("cpu/docker/cpu.cfs_quota_us", "250000");
  Write("cpu/docker/cpu.cfs_period_us", "100000");
  const std::string groups = "5:cpu,cpuacct:/docker/abc\n4:memory:/docker/abc\n3:pids:/\n";
  EXPECT_EQ(Memory(groups), 4000);
  EXPECT_EQ(Processors(groups), 2.5);
  EXPECT_EQ(Processors("5:cpu,cpuacct:/\n"), kNoQuota);
  EXPECT_EQ(Processors("5:cpuset:/docker\n"), kNoQuota);
}

TEST_F(ControlGroups, OfVersionOneMayBeMountedUnderAllNamesOfAHierarchyAlone) {
  Write("cpu,cpuacct/job/cpu.cfs_quota_us", "50000");
  Write("cpu,cpuacct/job/cpu.cfs_period_us", "100000");
  EXPECT_EQ(Processors("5:cpu,cpuacct:/job\n"), 0.5);
}

TEST_F(ControlGroups, OfBothVersionsSideBySideAllCount) {
  Write("cpu/job/cpu.cfs_quota_us", "300000");
  Write("cpu/job/cpu.cfs_period_us", "100000");
  Write("memory/job/memory.limit_in_bytes", "5000");
  Write("unified/job/cpu.max", "200000 100000");
  Write("unified/job/memory.max", "6000");
  const std::string groups = "4:memory:/job\n3:cpu,cpuacct:/job\n0::/job\n";
  EXPECT_EQ(Processors(groups), 2);
  EXPECT_EQ(Memory(groups), 5000);
}

TEST_F(ControlGroups, AreTheRootsWhereThePathIsAnotherNamespaces) {
  Write("memory.max", "700");
  Write("cpu.max", "50000 100000");
  for (const char* groups : {"0::/../../kubepods/pod1/abc\n", "0::/kubepods/pod1/abc\n"}) {
    EXPECT_EQ(Memory(groups), 700) << groups;
    EXPECT_EQ(Processors(groups), 0.5) << groups;
  }
}

TEST_F(ControlGroups, ThatSayNothingSensibleAreNoLimit) {
  Write("memory.max", "");
  Write("cpu.max", "fast");
  Write("odd/memory.max", "0");
  Write("odd/cpu.max", "1000 0");
  for (const char* groups : {"", "\n", "0:", "memory", "1:memory:", "0::/", "0::/odd"}) {
    EXPECT_EQ(Memory(groups), INT64_MAX) << groups;
    EXPECT_EQ(Processors(groups), kNoQuota) << groups;
  }
}

}  // namespace
}  // namespace linserve
