#pragma once

#include <cstdint>
#include <vector>

#include "attention/rows/spans.h"

namespace linserve {

// Is a span of a slice. Its start counts from the slice's first row.
struct SliceSpan : Span {
  int64_t offset = 0;  // rows of the sequence before these; 0 if there are several sequences
};

// Holds consecutive rows of a layout, padding included, that are computed as one tensor before
// others get a turn, and which sequences lie in them.
struct LayoutSlice {
  int64_t begin = 0;
  int64_t rows = 0;
  std::vector<SliceSpan> spans;
};

// Cuts all rows into slices of at most `limit`, so that what is held of them in between stays
// bounded. Within a sequence it cuts at multiples of `multiple` only, and rather makes a slice
// longer. Neighbouring whole sequences of equal length at equal distances make one span.
// O(sequences + slices).
std::vector<LayoutSlice> LayoutSlices(const PlacedLayout& layout, int64_t limit,
                                      int64_t multiple = 1);

}  // namespace linserve
