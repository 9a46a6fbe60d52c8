#include "core/processors.h"

#include <sched.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <atomic>
#include <cmath>
#include <fstream>
#include <limits>
#include <string>

namespace linserve {
namespace {

std::atomic<int64_t> processors_set = 0;  // 0: not

// The quota of /sys/fs/cgroup/cpu.max, "QUOTA PERIOD" or "max PERIOD", in whole processors.
int64_t CgroupQuota() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  double quota = 0;
  double period = 0;
  if (!(file >> quota >> period) || period <= 0) return std::numeric_limits<int64_t>::max();
  return std::max<int64_t>(1, std::llround(std::floor(quota / period)));
}

}  // namespace

int64_t Processors() {
  if (const int64_t set = processors_set; set > 0) return set;
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  const bool known = sched_getaffinity(0, sizeof(allowed), &allowed) == 0;
  const int64_t affinity = known ? CPU_COUNT(&allowed) : 1;
  return std::max<int64_t>(1, std::min(affinity, CgroupQuota()));
}

void SetProcessors(int64_t processors) { processors_set = processors; }

bool HasAmxBFloat16() {
#if defined(__x86_64__)
  constexpr unsigned kAmxBFloat16 = 1U << 22;  // of EDX, leaf 7
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (edx & kAmxBFloat16) != 0;
#else
  return false;
#endif
}

}  // namespace linserve
