#pragma once

#include <ATen/core/Tensor.h>

#include "attention/linear/feature_attention.h"

namespace linserve {

// Computes attention by the first two terms of softmax's Taylor series, of queries and keys of
// length one:
//   y_i = sum over visible j of (1 + q_i · k_j) value_j / sum over visible j of (1 + q_i · k_j)
// where q_i and k_j are query_i and key_j over their 2-norms (at least 1e-12). Linear attention
// with the features [1, q]. query [..., n, d], key [..., m, d], value [..., m, e] -> [..., n, e].
// O((n + m) · d · e). A weight 1 + q · k reaches zero where a key opposes the query: the
// denominator is at least 1e-6, so that such rows stay finite, and without any key are zeros.
// Source: Li et al. 2020, "Linear Attention Mechanism" (arXiv:2007.14902).
at::Tensor TaylorAttention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                           const Visible& visible);

// Returns Taylor attention as a form, to be continued with a state.
FeatureForm TaylorForm();

}  // namespace linserve
