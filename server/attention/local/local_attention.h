#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace linserve {

// Computes softmax attention within windows of `window` rows: a query of window u attends to the
// keys of windows u-1, u and u+1, causal: of u-1 and u up to its own position.
//   out_t = Σ_s softmax_s(q_t · k_s / sqrt(dim_head)) v_s
// The last window may be shorter. Keys whose mask is false get the lowest score. A row all of whose
// slots are hidden averages them, those outside the sequence (and the future) included, whose
// keys and values are -1 as in the package: finite, and of no use. With `outside_is_seen` the first
// and the last window attend to these as to any others.
// queries and `out`, which is written, [..., n, dim_head]; keys and values [..., m, dim_head], m >=
// n, which go on as far as they are; mask [..., m] as far as it broadcasts, undefined for none. Any
// strides; softmax in F32.
// O(n · window · dim_head) a head, scratch bounded for any length and window.
// Source: local-attention 1.11.2, which linear-attention-transformer 0.19.1 calls without
// positions. With `outside_is_seen` it is 1.5.3 to 1.8.4 where they have no mask.
void LocalAttention(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                    const at::Tensor& mask, int64_t window, bool causal, const at::Tensor& out,
                    bool outside_is_seen = false);

// Counts the pairs of query and key in a sequence of `length` rows.
double LocalAttentionPairs(int64_t length, int64_t window, bool causal);

}  // namespace linserve
