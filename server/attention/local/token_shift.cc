#include "attention/local/token_shift.h"

#include "attention/rows/aten.h"

namespace linserve {

at::Tensor ShiftTokens(const at::Tensor& rows, const PlacedLayout& layout, bool causal) {
  const int64_t group = rows.size(1) / (causal ? 2 : 3);
  at::Tensor shifted = rows.clone();
  for (const Span& span : Spans(layout)) {
    const at::Tensor source = View(rows, span);
    const at::Tensor target = View(shifted, span);
    const int64_t moved = span.length - 1;
    const at::Tensor later = target.narrow(-1, 0, group);
    later.narrow(1, 1, moved).copy_(source.narrow(-1, 0, group).narrow(1, 0, moved));
    later.select(1, 0).zero_();
    if (causal) continue;
    const at::Tensor earlier = target.narrow(-1, 2 * group, group);
    earlier.narrow(1, 0, moved).copy_(source.narrow(-1, 2 * group, group).narrow(1, 1, moved));
    earlier.select(1, moved).zero_();
  }
  return shifted;
}

at::Tensor ContinueShift(const at::Tensor& rows, const PlacedLayout& layout,
                         const at::Tensor& last) {
  at::Tensor shifted = ShiftTokens(rows, layout, /*causal=*/true);
  const int64_t group = last.size(1);
  for (const Span& span : Spans(layout)) {
    const at::Tensor passed_on = last.narrow(0, span.first, span.count);
    View(shifted, span).narrow(-1, 0, group).select(1, 0).copy_(passed_on);
    passed_on.copy_(View(rows, span).narrow(-1, 0, group).select(1, span.length - 1));
  }
  return shifted;
}

}  // namespace linserve
