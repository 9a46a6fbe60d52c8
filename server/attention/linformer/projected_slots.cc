#include "attention/linformer/projected_slots.h"

#include "attention/rows/aten.h"

namespace linserve {

void AddLastRow(at::Tensor& slots, const at::Tensor& row, const at::Tensor& projection,
                const PlacedLayout& layout) {
  const at::Tensor places = at::tensor(layout.lengths, at::dtype(at::kLong));
  const at::Tensor weights = projection.index_select(0, places.to(projection.device()));
  slots.addcmul_(weights.unsqueeze(-1), row);
}

at::Tensor RereadSlots(const at::Tensor& slots) {
  const at::Tensor block = slots.transpose(1, 2).contiguous();
  return block.view({slots.size(1), slots.size(0), slots.size(2)}).transpose(0, 1);
}

at::Tensor AppendZeroSlot(const at::Tensor& slots) {
  return at::constant_pad_nd(slots, {0, 0, 0, 1});
}

at::Tensor AppendOpenSlot(const at::Tensor& mask) { return at::constant_pad_nd(mask, {0, 1}); }

}  // namespace linserve
