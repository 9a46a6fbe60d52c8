#pragma once

#include <cstdint>

namespace linserve {

// What becomes of a text with more tokens than the model takes: a fault, or its first (kLeft) or
// last (kRight) tokens are dropped.
enum class Truncation : uint8_t { kNone, kLeft, kRight };

}  // namespace linserve
