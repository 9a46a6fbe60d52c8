#include "core/memory.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "absl/strings/str_split.h"

namespace linserve {

namespace {

int64_t LimitIn(const std::filesystem::path& file) {
  int64_t limit = 0;
  // "max" is no number: there is no limit then.
  return std::ifstream(file) >> limit && limit > 0 ? limit : INT64_MAX;
}

// Of the group `path` of a hierarchy and of all that hold it. In a container without a namespace of
// its own the path is the host's, of which only the root is there: the container's.
int64_t LeastLimit(const std::string& hierarchy, const std::string& path, const char* file) {
  int64_t least = INT64_MAX;
  for (std::filesystem::path group = hierarchy + path;; group = group.parent_path()) {
    least = std::min(least, LimitIn(group / file));
    if (group.native().size() <= hierarchy.size()) return least;
  }
}

}  // namespace

int64_t GroupMemoryLimit(const std::string& groups, const std::string& root) {
  int64_t least = INT64_MAX;
  const std::vector<std::string> lines = absl::StrSplit(groups, '\n');
  for (const std::string& line : lines) {
    // NUMBER:CONTROLLERS:PATH, without controllers in v2
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3 || parts[2].find("/..") != std::string::npos) continue;
    const std::vector<std::string> controllers = absl::StrSplit(parts[1], ',');
    if (parts[1].empty()) {
      least = std::min(least, LeastLimit(root, parts[2], "memory.max"));
    } else if (std::find(controllers.begin(), controllers.end(), "memory") != controllers.end()) {
      least = std::min(least, LeastLimit(root + "/memory", parts[2], "memory.limit_in_bytes"));
    }
  }
  return least;
}

int64_t MemoryBytes() {
  const int64_t machine = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  std::ifstream groups("/proc/self/cgroup");
  const std::string text{std::istreambuf_iterator<char>(groups), {}};
  return std::min(machine, GroupMemoryLimit(text, "/sys/fs/cgroup"));
}

std::string FormatBytes(double bytes) {
  constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.1f %s", bytes, kUnits[unit]);
  return text.data();
}

}  // namespace linserve
