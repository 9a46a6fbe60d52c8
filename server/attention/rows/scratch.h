#pragma once

#include <algorithm>
#include <cstdint>

namespace linserve {

// A function of this layer holds at most so many elements of scratch at once, however long the
// sequences are: 1 MiB in F32.
constexpr int64_t kScratchElements = int64_t{1} << 18;

// Returns how many things of so many elements each are computed at once, at least 1.
inline int64_t CountAtOnce(int64_t elements_each) {
  return std::max<int64_t>(1, kScratchElements / std::max<int64_t>(1, elements_each));
}

}  // namespace linserve
