#include "telemetry/process_stat.h"

#include <unistd.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace linserve {

std::optional<ProcessStat> ReadProcessStat() {
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
  return ProcessStat{
      .cpu_seconds = (field(14) + field(15)) / ticks,
      .threads = field(20),
      .start_seconds = field(22) / ticks,
      .virtual_bytes = field(23),
      .resident_bytes = field(kResident) * static_cast<double>(sysconf(_SC_PAGESIZE))};
}

}  // namespace linserve
