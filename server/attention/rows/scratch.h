#pragma once

#include <algorithm>
#include <cstdint>

namespace linserve {

// A function of this layer holds at most so many elements of scratch at once, however long the
// sequences are: 1 MiB in F32.
constexpr int64_t kScratchElements = int64_t{1} << 18;
// A device is asked for more, less often: 256 MiB in F32.
constexpr int64_t kDeviceScratchElements = int64_t{1} << 26;

// Returns how many things of so many elements each are computed at once, at least 1.
inline int64_t CountAtOnce(int64_t elements_each, bool on_cpu) {
  const int64_t elements = on_cpu ? kScratchElements : kDeviceScratchElements;
  return std::max<int64_t>(1, elements / std::max<int64_t>(1, elements_each));
}

}  // namespace linserve
