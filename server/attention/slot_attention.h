#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace linserve {

struct SlotAttentionOptions {
  bool causal = false;
  int64_t first = 0;         // index of the first query in its sequence
  int64_t most_scores = 0;   // that exist at once, but of one query at least
};

// Multi-head attention over slots: keys themselves, or what they were projected to.
//   result[b, i] = sum over open slots s of softmax_s(queries[b, i] · keys[b, h, s] / √width) ·
//                  values[b, h, s], head by head
// Causal: slot s is open to query i if s <= first + i. On projected keys that hides slots and not
// positions, which is what linformer-pytorch 0.19.3 does; on keys themselves it is the usual rule.
// queries and result [count, length, heads · width]; keys, values [count, heads, slots, width].
// O(count · length · slots · heads · width). Source: Vaswani et al. 2017 (arXiv:1706.03762), eq. 1.
void AttendToOpenSlots(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                       const SlotAttentionOptions& options, at::Tensor result);

}  // namespace linserve
