#pragma once

#include <ATen/core/Tensor.h>

#include "attention/linear/feature_attention.h"

namespace linserve {

// Computes linear attention with the feature map phi = elu + 1:
//   y_i = sum over visible j of (phi(query_i) · phi(key_j)) value_j
// and with `normalize` divided by the sum of phi(query_i) · phi(key_j).
// query [..., n, d], key [..., m, d], value [..., m, e] -> [..., n, e]. O((n + m) · d · e). A query
// that sees no key, or whose every weight is less than F32 can hold, gives zeros.
// Source: Katharopoulos et al. 2020 (arXiv:2006.16236).
at::Tensor KernelAttention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                           const Visible& visible, bool normalize);

// Returns kernel attention as a form, to be continued with a state.
FeatureForm KernelForm(bool normalize);

}  // namespace linserve
