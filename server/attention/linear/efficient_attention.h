#pragma once

#include <ATen/core/Tensor.h>

#include <limits>

#include "attention/rows/visible.h"

namespace linserve {

// This is less than any key, and stands for the largest of no keys.
inline constexpr double kLowestKey = std::numeric_limits<float>::lowest();

// Holds all that a query needs to know of the keys before it, whatever their number, in F32.
// Without any keys it is undefined, or kLowestKey and zeros. What is defined is updated in place.
struct EfficientState {
  at::Tensor largest;  // [..., 1, d]: of each feature over the keys
  at::Tensor weights;  // [..., 1, d]: sum of w_j, where w_j = exp(key_j - largest)
  at::Tensor values;   // [..., d, e]: sum of w_jᵀ · value_j
};

// Computes efficient attention: the softmax of the queries over features, of the keys over
// positions:
//   y_i = sum over features f of softmax_f(query_i)_f · c_f,
//   c_f = sum over visible j of exp(key_jf) value_j / sum over visible j of exp(key_jf)
// so that with `causal` each query has its own c. query [..., n, d], key [..., m, d],
// value [..., m, e] -> [..., n, e], summed in F32. A query that sees no key gives zeros.
// O((n + m) · d · e), scratch bounded for any length. Exact for keys of any size; where
// within a block of causal rows the largest key grows by more than 60, it is cut into smaller ones.
// Source: Shen et al. 2018 (arXiv:1812.01243).
at::Tensor EfficientAttention(const at::Tensor& query, const at::Tensor& key,
                              const at::Tensor& value, const Visible& visible);

// Computes the causal attention of further rows of a sequence: `state` is of all rows before them,
// and then of these, too. mask [..., n] or undefined.
at::Tensor ContinueEfficientAttention(const at::Tensor& query, const at::Tensor& key,
                                      const at::Tensor& value, const at::Tensor& mask,
                                      EfficientState& state);

}  // namespace linserve
