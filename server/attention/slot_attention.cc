#include "attention/slot_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "attention/aten.h"
#include "attention/spans.h"

namespace linserve {
namespace {

// scores [..., rows, slots] of queries `first` and following.
void HideLaterSlots(at::Tensor& scores, int64_t first) {
  const at::TensorOptions integers = scores.options().dtype(at::kLong);
  const at::Tensor slots = at::arange(scores.size(-1), integers);
  const at::Tensor rows = at::arange(first, first + scores.size(-2), integers);
  scores.masked_fill_(slots.gt(rows.unsqueeze(-1)), -std::numeric_limits<float>::infinity());
}

}  // namespace

void AttendToOpenSlots(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                       const SlotAttentionOptions& options, at::Tensor result) {
  const int64_t heads = keys.size(1);
  const int64_t slots = keys.size(2);
  const int64_t length = queries.size(1);
  const double scale = 1.0 / std::sqrt(static_cast<double>(keys.size(3)));
  const at::Tensor flat_keys = keys.flatten(0, 1).transpose(1, 2);
  const at::Tensor flat_values = values.flatten(0, 1);
  const int64_t block =
      std::clamp<int64_t>(options.most_scores / (flat_keys.size(0) * slots), 1, length);
  for (int64_t row = 0; row < length; row += block) {
    const int64_t rows = std::min(block, length - row);
    const int64_t first = options.first + row;
    const int64_t open = options.causal ? std::min(slots, first + rows) : slots;
    const at::Tensor block_queries = SplitHeads(queries.narrow(1, row, rows), heads).flatten(0, 1);
    at::Tensor scores = at::bmm(block_queries * scale, flat_keys.narrow(2, 0, open));
    if (options.causal && first < open - 1) HideLaterSlots(scores, first);
    const at::Tensor weighed = at::bmm(at::softmax(scores, -1), flat_values.narrow(1, 0, open));
    result.narrow(1, row, rows).copy_(JoinHeads(weighed.unflatten(0, {-1, heads})));
  }
}

}  // namespace linserve
