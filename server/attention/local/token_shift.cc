#include "attention/local/token_shift.h"

#include <algorithm>

#include "attention/rows/aten.h"

namespace linserve {

at::Tensor ShiftTokens(const at::Tensor& rows, const PlacedLayout& layout,
                       const std::vector<int64_t>& shifts, const at::Tensor& mask) {
  const int64_t group = rows.size(1) / std::ssize(shifts);
  const at::Tensor moving =
      mask.defined() ? rows.masked_fill(mask.logical_not().unsqueeze(-1), 0) : rows;
  at::Tensor shifted = rows.clone();
  for (const Span& span : Spans(layout)) {
    const int64_t moved = span.length - 1;
    for (int64_t i = 0; i < std::ssize(shifts); ++i) {
      const int64_t shift = shifts[static_cast<size_t>(i)];
      if (shift == 0) continue;
      const int64_t from = shift > 0 ? 0 : 1;
      const at::Tensor source = View(moving, span).narrow(-1, i * group, group);
      const at::Tensor target = View(shifted, span).narrow(-1, i * group, group);
      target.narrow(1, 1 - from, moved).copy_(source.narrow(1, from, moved));
      target.select(1, shift > 0 ? 0 : moved).zero_();
    }
  }
  return shifted;
}

at::Tensor ContinueShift(const at::Tensor& rows, const PlacedLayout& layout,
                         const std::vector<int64_t>& shifts, const at::Tensor& last) {
  at::Tensor shifted = ShiftTokens(rows, layout, shifts);
  const int64_t group = last.size(1);
  const int64_t column = group * (std::find(shifts.begin(), shifts.end(), 1) - shifts.begin());
  for (const Span& span : Spans(layout)) {
    const at::Tensor passed_on = last.narrow(0, span.first, span.count);
    View(shifted, span).narrow(-1, column, group).select(1, 0).copy_(passed_on);
    passed_on.copy_(View(rows, span).narrow(-1, column, group).select(1, span.length - 1));
  }
  return shifted;
}

}  // namespace linserve
