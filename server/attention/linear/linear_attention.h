#pragma once

#include <ATen/core/Tensor.h>

namespace linserve {

// Computes linear attention over a whole sequence, with softmaxed queries and keys:
//   out_t = dim_head^-1/2 · ρ(q_t) · Σ_s κ_s v_sᵀ
// ρ is the softmax over the features of a query, κ the softmax over the length m of each feature of
// the keys. Keys whose mask is false count as the lowest number before κ, their values as 0; if all
// are masked, the result is 0.
// queries and `out`, which is written, [..., n, dim_head]; keys and values [..., m, dim_head]; mask
// [..., m] as far as it broadcasts, undefined for none. Any strides; sums and softmaxes in F32.
// O((n + m) · dim_head²) a head, scratch bounded for any length.
// Source: Shen et al. 2018 (arXiv:1812.01243), as linear-attention-transformer 0.19.1 has it
// (linear_attn).
void LinearAttention(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                     const at::Tensor& mask, const at::Tensor& out);

// These are its two halves. The first returns what queries need to know of the keys, dim_head^-1/2
// · Σ_s κ_s v_sᵀ, F32 [..., dim_head, dim_head]; the second what the queries make of that.
at::Tensor LinearContext(const at::Tensor& keys, const at::Tensor& values, const at::Tensor& mask);
void AttendToContext(const at::Tensor& queries, const at::Tensor& context, const at::Tensor& out);

}  // namespace linserve
