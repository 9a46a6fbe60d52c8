#include "attention/linformer/slot_attention.h"

#include <algorithm>

#include "attention/rows/aten.h"
#include "attention/rows/spans.h"

namespace linserve {

at::Tensor AttendToOpenSlots(const at::Tensor& queries, const at::Tensor& keys,
                             const at::Tensor& values, const OpenSlots& open) {
  const at::Tensor heads = SplitHeads(queries, keys.size(1));
  const int64_t length = queries.size(1);
  const int64_t slots = keys.size(2);
  if (!open.causal || open.first >= slots - 1) {
    return JoinHeads(at::scaled_dot_product_attention(heads, keys, values));
  }
  const int64_t seen = std::min(slots, open.first + length);  // by the last query
  const at::Tensor seen_keys = keys.narrow(2, 0, seen);
  const at::Tensor seen_values = values.narrow(2, 0, seen);
  if (open.first == 0) {
    return JoinHeads(at::scaled_dot_product_attention(heads, seen_keys, seen_values, {}, 0.0,
                                                      /*is_causal=*/true));
  }
  const at::Tensor mask =
      at::ones({length, seen}, keys.options().dtype(at::kBool)).tril_(open.first);
  return JoinHeads(at::scaled_dot_product_attention(heads, seen_keys, seen_values, mask));
}

}  // namespace linserve
