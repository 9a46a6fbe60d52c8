#pragma once

#include <ATen/core/Tensor.h>

#include "attention/rows/visible.h"

namespace linserve {

// Scaled dot-product attention:
//   y_i = sum over visible j of softmax_j(query_i · key_j / sqrt(d)) · value_j
// query [..., n, d], key [..., m, d], value [..., m, e], at most two axes in front -> [..., n, e].
// A query that sees no key gives zeros. O(n · m · (d + e)), scratch bounded for any length.
// Source: Vaswani et al. 2017 (arXiv:1706.03762), equation 1.
at::Tensor SoftmaxAttention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                            const Visible& visible);

}  // namespace linserve
