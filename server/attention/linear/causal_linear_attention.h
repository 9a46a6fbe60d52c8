#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace linserve {

// Holds what a causal pass has read so far, of each head: all that later rows need of earlier ones.
// The true sums are exp(shift) times these.
struct CausalState {
  at::Tensor context;  // Σ κ_s v_sᵀ [..., dim_head, dim_head]
  at::Tensor total;    // Σ κ_s [..., 1, dim_head]
  at::Tensor shift;    // [..., 1, 1]
};

inline constexpr double kCausalFloor = 1e-3;

// Says what divides a row's weighed values: the sum of its weights, or `floor` if that is more, and
// what `added` adds to the sum over the keys of each feature.
struct CausalDivisor {
  double floor = kCausalFloor;
  double added = 0;
};

// So many rows attend to each other by a masked product.
inline constexpr int64_t kCausalBlock = 64;
// Up to this exponent exp(k), summed and multiplied by values, stays far from overflow in F32.
inline constexpr float kLargestExponent = 40;

// Computes the linear attention of every row to those before it:
//   out_t = (q̂_t · Σ_s κ_s v_sᵀ) / (max(q̂_t · Σ_s κ_s, floor) + q̂_t · added)
// with q̂ = softmax over the features · dim_head^-1/2 and κ = exp(k). The sums are over s <= t for
// bucket 1, otherwise over the buckets of so many rows before t's own, which leaves 0 to the first.
// Keys whose mask is false count as nothing.
// queries, keys, values and `out`, which is written, [..., n, dim_head]; mask [..., n] as far as it
// broadcasts, undefined for none. Any strides; computed in F32, and in F64 if a key is so large
// that exp(k) needs it.
// `state`: empty for a new sequence; left as it is after the last row. So a sequence may be
// computed chunk by chunk, all but the last of a multiple of `bucket` rows.
// O(n · dim_head²) a head, scratch bounded for any length.
// Source: Katharopoulos et al. 2020 (arXiv:2006.16236) with the feature maps of
// linear-attention-transformer 0.19.1 (causal_linear_attn), and with a divisor of its own
// performer-pytorch 1.1.4 (no_projection).
void CausalLinearAttention(const at::Tensor& queries, const at::Tensor& keys,
                           const at::Tensor& values, const at::Tensor& mask, int64_t bucket,
                           CausalState& state, const at::Tensor& out,
                           const CausalDivisor& divisor = {});

}  // namespace linserve
