#include "core/system/processors.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <fstream>

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

std::string ProcessorName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t name = line.find(": ");
    if (line.starts_with("model name") && name != std::string::npos) return line.substr(name + 2);
  }
  return "";
}

void SetProcessors(int64_t processors) { processors_set = processors; }

}  // namespace linserve
