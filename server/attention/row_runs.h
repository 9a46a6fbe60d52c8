#pragma once

#include <cstdint>
#include <vector>

#include "attention/spans.h"

namespace linserve {

// Rows of some sequences that are computed as one tensor.
struct RunPiece {
  Span span;           // its start counts from the run's first row
  int64_t offset = 0;  // rows of the sequence before these; 0 if it holds several sequences
};

// Consecutive rows of a layout, padding included, and what of which sequences lies in them.
struct RowRun {
  int64_t begin = 0;
  int64_t rows = 0;
  std::vector<RunPiece> pieces;
};

// Cuts all rows into runs of at most `limit`, so that what is held of them in between stays
// bounded. Within a sequence it cuts at multiples of `multiple` only, and rather makes a run
// longer. Neighbouring whole sequences of equal length at equal distances make one piece.
// O(sequences + runs).
std::vector<RowRun> RowRuns(const AxisLayout& layout, int64_t limit, int64_t multiple = 1);

// Sequences [first, first + count) of a layout as a layout of their own, and where it begins.
struct LayoutPart {
  int64_t begin = 0;  // row
  AxisLayout layout;
};
LayoutPart PartOf(const AxisLayout& layout, int64_t first, int64_t count);

}  // namespace linserve
