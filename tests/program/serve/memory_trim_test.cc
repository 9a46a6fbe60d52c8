#include "program/serve/memory_trim.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <memory>
#include <vector>

#include "core/system/glibc_heap.h"
#include "core/system/heap.h"
#include "support/wait_until.h"
#include "telemetry/metrics.h"
#include "telemetry/process_stat.h"

namespace linserve {
namespace {

constexpr double kBurst = 96 << 20;

double Resident() { return ReadProcessStat()->resident_bytes; }

// Takes and frees what a burst of requests does.
void Burst() {
  std::vector<std::vector<char>> blocks;
  for (double bytes = 0; bytes < kBurst; bytes += 1 << 20) blocks.emplace_back(1 << 20, 'x');
}

TEST(MemoryTrim, GivesBackWhatABurstLeftOnceNoRequestComes) {
  if (!AllocatesByGlibc()) GTEST_SKIP() << "this allocator is not glibc's";
  KeepFreedPages();
  malloc_trim(0);
  const double before = Resident();
  Burst();
  ASSERT_GT(Resident(), before + kBurst / 2);
  Metrics metrics({});
  const MemoryTrim trim(std::make_shared<Inflight>(InflightLimits().Resolved(), metrics));
  EXPECT_TRUE(WaitUntil([&] { return Resident() < before + kBurst / 4; }));
}

}  // namespace
}  // namespace linserve
