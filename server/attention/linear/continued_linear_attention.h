#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "attention/linear/causal_linear_attention.h"

namespace linserve {

// Holds what CausalLinearAttention() has read of some sequences, F32, [sequences, heads, ...]. The
// true sums of each feature are exp(shift) times these, so that none overflows, and none is lost
// beside a larger one. Zeros: nothing yet.
struct ContinuedSums {
  at::Tensor context;  // Σ κ_s v_sᵀ [..., dim_head, dim_head]
  at::Tensor total;    // Σ κ_s [..., dim_head, 1]
  at::Tensor shift;    // [..., dim_head, 1]
  // These are the sums over the rows of an unfinished bucket, which nothing sees yet: they must not
  // shift what is seen. They are undefined if buckets are of one row.
  at::Tensor open_context;
  at::Tensor open_total;
  at::Tensor open_shift;
};

// CausalLinearAttention (attention/linear/causal_linear_attention.h) of the next rows of sequences
// of which `positions` rows have been read, one number a sequence. `sums` is updated in place.
// queries, keys, values and `out`, which is written, [sequences, heads, n, dim_head]; any strides
// and types, computed in F32. O(n · dim_head²) a head.
void ContinueLinearAttention(const at::Tensor& queries, const at::Tensor& keys,
                             const at::Tensor& values, const std::vector<int64_t>& positions,
                             int64_t bucket, const ContinuedSums& sums, const at::Tensor& out,
                             const CausalDivisor& divisor = {});

}  // namespace linserve
