#pragma once

#include <cstdint>
#include <string>

namespace linserve {

// Bytes of memory that this process may use: the machine's, or the limit of its cgroup (v2) if that
// is less, as a container's memory limit is.
int64_t MemoryBytes();

// "1.5 GiB", with a unit that fits.
std::string FormatBytes(double bytes);

}  // namespace linserve
