#include "attention/rows/layout_part.h"

namespace linserve {

LayoutPart PartOf(const PlacedLayout& layout, int64_t first, int64_t count) {
  LayoutPart part;
  part.begin = layout.starts[static_cast<size_t>(first)];
  part.layout.padded_length = layout.padded_length;
  for (auto i = static_cast<size_t>(first); i < static_cast<size_t>(first + count); ++i) {
    part.layout.starts.push_back(layout.starts[i] - part.begin);
    part.layout.lengths.push_back(layout.lengths[i]);
  }
  const auto next = static_cast<size_t>(first + count);
  const int64_t end = next < layout.starts.size() ? layout.starts[next] : layout.rows;
  part.layout.rows = end - part.begin;
  return part;
}

}  // namespace linserve
