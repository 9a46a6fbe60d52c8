#pragma once

#include <optional>

namespace linserve {

// Holds fields of /proc/self/stat, see proc(5).
struct ProcessStat {
  double cpu_seconds = 0;
  double threads = 0;
  double start_seconds = 0;  // since the system booted
  double virtual_bytes = 0;
  double resident_bytes = 0;
};

// Reads the file; nullopt where there is none.
std::optional<ProcessStat> ReadProcessStat();

}  // namespace linserve
