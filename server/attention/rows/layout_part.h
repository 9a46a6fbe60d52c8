#pragma once

#include <cstdint>

#include "attention/rows/placed_layout.h"

namespace linserve {

// Holds some of a layout's sequences as a layout of their own.
struct LayoutPart {
  int64_t begin = 0;  // the row of the whole layout that is this one's first
  PlacedLayout layout;
};

// Returns the part that holds sequences [first, first + count), padding included. O(count).
LayoutPart PartOf(const PlacedLayout& layout, int64_t first, int64_t count);

}  // namespace linserve
