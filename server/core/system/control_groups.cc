#include "core/system/control_groups.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <vector>

#include "absl/strings/str_split.h"

namespace linserve {
namespace {

namespace fs = std::filesystem;

struct Numbers {
  double first = 0;
  double second = 0;
};

// Returns the first two numbers of a file, and 0 in the place of each that is not there: "max" is
// none, and means that there is no limit.
Numbers NumbersIn(const fs::path& path) {
  Numbers numbers;
  std::ifstream file(path);
  if (!(file >> numbers.first)) return {};
  if (!(file >> numbers.second)) numbers.second = 0;
  return numbers;
}

void LimitMemory(const fs::path& file, GroupLimits& limits) {
  const double bytes = NumbersIn(file).first;
  if (bytes <= 0 || bytes >= static_cast<double>(INT64_MAX)) return;
  limits.memory_bytes = std::min(limits.memory_bytes, static_cast<int64_t>(bytes));
}

void LimitProcessors(double quota, double period, GroupLimits& limits) {
  if (quota > 0 && period > 0) limits.processors = std::min(limits.processors, quota / period);
}

// Each of these takes the limits of one group, whose directory is given.
void TakeV2(const fs::path& group, GroupLimits& limits) {
  LimitMemory(group / "memory.max", limits);
  const Numbers processors = NumbersIn(group / "cpu.max");
  LimitProcessors(processors.first, processors.second, limits);
}
void TakeV1Memory(const fs::path& group, GroupLimits& limits) {
  LimitMemory(group / "memory.limit_in_bytes", limits);
}
void TakeV1Processors(const fs::path& group, GroupLimits& limits) {
  LimitProcessors(NumbersIn(group / "cpu.cfs_quota_us").first,
                  NumbersIn(group / "cpu.cfs_period_us").first, limits);
}

// Takes the limits of the group `path` of a hierarchy and of all that hold it. In a container
// without a namespace of its own the path is the host's, and only the root of it is there, which is
// the container's group.
void TakeAll(const std::string& hierarchy, const std::string& path, GroupLimits& limits,
             const std::function<void(const fs::path&, GroupLimits&)>& take) {
  for (fs::path group = hierarchy + path;; group = group.parent_path()) {
    take(group, limits);
    if (group.native().size() <= hierarchy.size()) return;
  }
}

}  // namespace

GroupLimits LimitsOf(const std::string& groups, const std::string& root) {
  GroupLimits limits;
  const std::vector<std::string> lines = absl::StrSplit(groups, '\n');
  for (const std::string& line : lines) {
    // A line is NUMBER:CONTROLLERS:PATH; CONTROLLERS is empty in v2.
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    // A group outside of the namespace is not to be seen; the namespace's root is.
    const std::string path = parts[2].find("/..") == std::string::npos ? parts[2] : "";
    if (parts[1].empty()) {
      // Beside v1, v2 has a place of its own.
      for (const char* place : {"", "/unified"}) TakeAll(root + place, path, limits, TakeV2);
      continue;
    }
    const std::vector<std::string> controllers = absl::StrSplit(parts[1], ',');
    for (const std::string& controller : controllers) {
      // A hierarchy is mounted under the names of all its controllers, often under each as well.
      for (const std::string& mount : {root + "/" + controller, root + "/" + parts[1]}) {
        if (controller == "memory") TakeAll(mount, path, limits, TakeV1Memory);
        if (controller == "cpu") TakeAll(mount, path, limits, TakeV1Processors);
      }
    }
  }
  return limits;
}

GroupLimits OwnGroupLimits() {
  std::ifstream groups("/proc/self/cgroup");
  const std::string text{std::istreambuf_iterator<char>(groups), {}};
  return LimitsOf(text, "/sys/fs/cgroup");
}

}  // namespace linserve
