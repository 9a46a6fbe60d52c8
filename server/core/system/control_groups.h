#pragma once

#include <cstdint>
#include <string>

namespace linserve {

// Holds what control groups leave to a process.
struct GroupLimits {
  int64_t memory_bytes = INT64_MAX;  // INT64_MAX: there is no limit
  double processors = 1e9;           // of a second, each second; 1e9: there is no quota
};

// Returns the least limits of a process's control groups and of those that hold them, of cgroup v1,
// v2, or both side by side. `groups` is what /proc/PID/cgroup says, `root` is /sys/fs/cgroup.
GroupLimits LimitsOf(const std::string& groups, const std::string& root);

// Returns the limits of this process.
GroupLimits OwnGroupLimits();

}  // namespace linserve
