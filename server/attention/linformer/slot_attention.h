#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace linserve {

// Says which slots a query sees.
struct OpenSlots {
  bool causal = false;  // else all of them
  int64_t first = 0;    // index of the first query in its sequence
};

// Computes multi-head attention over slots: keys themselves, or what they were projected to.
//   result[b, i] = sum over open slots s of softmax_s(queries[b, i] · keys[b, h, s] / √width) ·
//                  values[b, h, s], head by head
// Causal: slot s is open to query i if s <= first + i. On projected keys that hides slots and not
// positions, which is what linformer-pytorch 0.19.3 does; on keys themselves it is the usual rule.
// queries [count, length, heads · width]; keys, values [count, heads, slots, width] -> as queries.
// O(count · length · slots · heads · width); scores exist in small blocks only, and in F32. A
// causal result with first > 0 takes a mask of length · slots.
// Source: Vaswani et al. 2017 (arXiv:1706.03762), eq. 1.
at::Tensor AttendToOpenSlots(const at::Tensor& queries, const at::Tensor& keys,
                             const at::Tensor& values, const OpenSlots& open);

}  // namespace linserve
