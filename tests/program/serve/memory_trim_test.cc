#include "program/serve/memory_trim.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "core/system/heap.h"
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
  if (const std::vector<char> probe(64 << 20); mallinfo2().hblks == 0) {
    GTEST_SKIP() << "this allocator is not glibc's";
  }
  KeepFreedPages();
  malloc_trim(0);
  const double before = Resident();
  Burst();
  ASSERT_GT(Resident(), before + kBurst / 2);
  Metrics metrics({});
  const MemoryTrim trim(std::make_shared<Inflight>(InflightLimits().Resolved(), metrics));
  const auto late = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (Resident() > before + kBurst / 4) {
    ASSERT_LT(std::chrono::steady_clock::now(), late) << "it still holds the burst";
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace
}  // namespace linserve
