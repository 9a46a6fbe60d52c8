#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

#include "core/system/memory.h"
#include "telemetry/instruments.h"
#include "telemetry/process_stat.h"

namespace linserve {
namespace {

std::optional<double> ReadBootTime() {
  std::ifstream file("/proc/stat");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("btime ")) return std::stod(line.substr(6));
  }
  return std::nullopt;
}

std::optional<double> CountOpenFiles() {
  std::error_code error;
  std::filesystem::directory_iterator entries("/proc/self/fd", error);
  double count = -1;  // the listing itself holds one open
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    ++count;
  }
  if (error) return std::nullopt;
  return count;
}

std::optional<double> MaxOpenFiles() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::nullopt;
  return static_cast<double>(limit.rlim_cur);
}

}  // namespace

std::vector<prometheus::MetricFamily> ProcessMetrics() {
  std::vector<prometheus::MetricFamily> families;
  const auto gauge = [&](const std::string& name, const std::string& help, double value) {
    families.push_back(Family(name, help, prometheus::MetricType::Gauge, value));
  };
  if (const auto stat = ReadProcessStat()) {
    gauge("process_resident_memory_bytes", "Resident memory.", stat->resident_bytes);
    gauge("process_virtual_memory_bytes", "Virtual memory.", stat->virtual_bytes);
    gauge("process_threads", "Threads.", stat->threads);
    families.push_back(Family("process_cpu_seconds_total", "User and system CPU time.",
                              prometheus::MetricType::Counter, stat->cpu_seconds));
    if (const std::optional<double> boot = ReadBootTime()) {
      gauge("process_start_time_seconds", "Start of the process since the Unix epoch.",
            *boot + stat->start_seconds);
    }
  }
  gauge("linserve_memory_limit_bytes",
        "Memory that the process may use: the machine's, or its control group's.",
        static_cast<double>(MemoryBytes()));
  if (const auto open = CountOpenFiles()) gauge("process_open_fds", "Open files.", *open);
  if (const auto most = MaxOpenFiles()) gauge("process_max_fds", "Limit of open files.", *most);
  return families;
}

}  // namespace linserve
