#include "core/system/processors.h"

#include <sched.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <atomic>
#include <cmath>

#include "core/system/control_groups.h"

namespace linserve {
namespace {

std::atomic<int64_t> processors_set = 0;  // 0: not set

}  // namespace

int64_t Processors() {
  if (const int64_t set = processors_set; set > 0) return set;
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  const bool known = sched_getaffinity(0, sizeof(allowed), &allowed) == 0;
  const double affinity = known ? CPU_COUNT(&allowed) : 1;
  // A thread more than the quota would be stopped for most of each period, while the others wait.
  return std::max<int64_t>(
      1, std::llround(std::floor(std::min(affinity, OwnGroupLimits().processors))));
}

void SetProcessors(int64_t processors) { processors_set = processors; }

bool HasAmxBFloat16() {
#if defined(__x86_64__)
  constexpr unsigned kAmxBFloat16 = 1U << 22;  // bit of EDX, leaf 7
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
