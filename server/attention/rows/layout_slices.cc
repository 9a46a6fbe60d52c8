#include "attention/rows/layout_slices.h"

#include <algorithm>
#include <utility>

namespace linserve {
namespace {

// Returns where the slice that starts at row `begin` ends. `sequence` is the first one that ends
// past `begin`.
int64_t EndOfSlice(const PlacedLayout& layout, size_t sequence, int64_t begin, int64_t limit,
                   int64_t multiple) {
  if (layout.rows - begin <= limit) return layout.rows;
  const int64_t end = begin + limit;
  while (sequence < layout.starts.size() &&
         layout.starts[sequence] + layout.lengths[sequence] <= end) {
    ++sequence;
  }
  if (sequence == layout.starts.size() || layout.starts[sequence] >= end) return end;
  const int64_t start = layout.starts[sequence];
  const int64_t cut = start + (end - start) / multiple * multiple;
  if (cut > begin) return cut;
  return std::min(begin + multiple, start + layout.lengths[sequence]);
}

// Says whether the next sequence, which is whole in the slice, continues the slice's last span.
bool ContinuesIn(const LayoutSlice& slice, const PlacedLayout& layout) {
  if (slice.spans.empty()) return false;
  const Span& span = slice.spans.back();
  const bool whole = span.length == layout.lengths[static_cast<size_t>(span.first)];
  return whole && Continues(span, layout);
}

}  // namespace

std::vector<LayoutSlice> LayoutSlices(const PlacedLayout& layout, int64_t limit, int64_t multiple) {
  std::vector<LayoutSlice> slices;
  size_t sequence = 0;
  for (int64_t begin = 0; begin < layout.rows;) {
    const int64_t end = EndOfSlice(layout, sequence, begin, limit, multiple);
    LayoutSlice slice{begin, end - begin, {}};
    for (; sequence < layout.starts.size() && layout.starts[sequence] < end; ++sequence) {
      const int64_t start = layout.starts[sequence];
      const int64_t first = std::max(start, begin);
      const int64_t length = std::min(start + layout.lengths[sequence], end) - first;
      const bool whole = length == layout.lengths[sequence];
      if (whole && ContinuesIn(slice, layout)) {
        Extend(slice.spans.back(), layout);
      } else {
        const Span span{static_cast<int64_t>(sequence), 1, first - begin, length, length};
        slice.spans.push_back({span, first - start});
      }
      if (start + layout.lengths[sequence] > end) break;
    }
    slices.push_back(std::move(slice));
    begin = end;
  }
  return slices;
}

}  // namespace linserve
