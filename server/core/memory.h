#pragma once

#include <cstdint>
#include <string>

namespace linserve {

// Bytes of memory that this process may use: the machine's, or the limit of its control groups if
// that is less, as a container's memory limit is.
int64_t MemoryBytes();

// The least limit of the control groups of a process and of those that hold them, of cgroup v1 or
// v2; INT64_MAX if there is none. `groups`: what /proc/PID/cgroup says; `root`: /sys/fs/cgroup.
int64_t GroupMemoryLimit(const std::string& groups, const std::string& root);

// "1.5 GiB", with a unit that fits.
std::string FormatBytes(double bytes);

}  // namespace linserve
