#pragma once

#include <cstdint>

namespace linserve {

// Says which of the waiting sequences go first.
enum class Priority : uint8_t { kHigh = 1, kNormal = 2, kLow = 3 };

// Converts a number on the wire, where priorities count as Triton's do: 1 goes first, 0 is the
// default, and what is beyond 3 goes last.
inline Priority PriorityFromLevel(uint64_t level) {
  if (level == 0) return Priority::kNormal;
  return level >= 3 ? Priority::kLow : static_cast<Priority>(level);
}

}  // namespace linserve
