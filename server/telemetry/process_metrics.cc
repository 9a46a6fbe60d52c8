#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <utility>

#include "telemetry/instruments.h"

namespace linserve {
namespace {

// Of /proc/self/stat, see proc(5).
struct Stat {
  double cpu_seconds = 0;
  double threads = 0;
  double start_seconds = 0;  // since the system booted
  double virtual_bytes = 0;
  double resident_bytes = 0;
};

std::optional<Stat> ReadStat() {
  std::ifstream file("/proc/self/stat");
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  // The second field is the program's name in brackets, which may hold spaces and brackets.
  std::istringstream after_name(line.substr(line.rfind(')') + 1));
  const std::vector<std::string> fields{std::istream_iterator<std::string>(after_name), {}};
  constexpr size_t kResident = 24;
  if (fields.size() < kResident - 2) return std::nullopt;
  // proc(5) counts from 1, and the first of `fields` is number 3.
  const auto field = [&](size_t number) { return std::stod(fields[number - 3]); };
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  return Stat{.cpu_seconds = (field(14) + field(15)) / ticks,
              .threads = field(20),
              .start_seconds = field(22) / ticks,
              .virtual_bytes = field(23),
              .resident_bytes = field(kResident) * static_cast<double>(sysconf(_SC_PAGESIZE))};
}

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

prometheus::MetricFamily Family(const std::string& name, const std::string& help,
                                prometheus::MetricType type, double value) {
  prometheus::ClientMetric metric;
  (type == prometheus::MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
  return {name, help, type, {metric}};
}

}  // namespace

std::vector<prometheus::MetricFamily> ProcessMetrics() {
  std::vector<prometheus::MetricFamily> families;
  const auto gauge = [&](const std::string& name, const std::string& help, double value) {
    families.push_back(Family(name, help, prometheus::MetricType::Gauge, value));
  };
  if (const std::optional<Stat> stat = ReadStat()) {
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
  if (const auto open = CountOpenFiles()) gauge("process_open_fds", "Open files.", *open);
  if (const auto most = MaxOpenFiles()) gauge("process_max_fds", "Limit of open files.", *most);
  return families;
}

}  // namespace linserve
