#include "attention/row_runs.h"

#include <algorithm>
#include <utility>

namespace linserve {
namespace {

// Where the run that starts at row `begin` ends. `sequence` is the first one that ends past
// `begin`.
int64_t EndOfRun(const AxisLayout& layout, size_t sequence, int64_t begin, int64_t limit,
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

// Whether the sequence, which is whole in the run, continues the run's last piece.
bool Continues(const RunPiece& piece, const AxisLayout& layout, size_t sequence) {
  const auto first = static_cast<size_t>(piece.span.first);
  const bool whole = piece.span.length == layout.lengths[first];
  if (!whole || layout.lengths[sequence] != layout.lengths[first]) return false;
  const int64_t distance = layout.starts[sequence] - layout.starts[sequence - 1];
  return piece.span.count == 1 || distance == piece.span.stride;
}

}  // namespace

std::vector<RowRun> RowRuns(const AxisLayout& layout, int64_t limit, int64_t multiple) {
  std::vector<RowRun> runs;
  size_t sequence = 0;
  for (int64_t begin = 0; begin < layout.rows;) {
    const int64_t end = EndOfRun(layout, sequence, begin, limit, multiple);
    RowRun run{begin, end - begin, {}};
    for (; sequence < layout.starts.size() && layout.starts[sequence] < end; ++sequence) {
      const int64_t start = layout.starts[sequence];
      const int64_t first = std::max(start, begin);
      const int64_t length = std::min(start + layout.lengths[sequence], end) - first;
      const bool whole = length == layout.lengths[sequence];
      if (whole && !run.pieces.empty() && Continues(run.pieces.back(), layout, sequence)) {
        run.pieces.back().span.stride = start - layout.starts[sequence - 1];
        ++run.pieces.back().span.count;
      } else {
        const Span span{static_cast<int64_t>(sequence), 1, first - begin, length, length};
        run.pieces.push_back({span, first - start});
      }
      if (start + layout.lengths[sequence] > end) break;
    }
    runs.push_back(std::move(run));
    begin = end;
  }
  return runs;
}

LayoutPart PartOf(const AxisLayout& layout, int64_t first, int64_t count) {
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
