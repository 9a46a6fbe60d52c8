#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "attention/layouts.h"
#include "attention/rows/visible.h"

namespace linserve {

// These functions compute the five methods by their formulas, key by key in float64: what the
// functions under test must equal. query [..., n, d], key [..., m, d], value [..., m, e] -> F64
// [..., n, e].
using AttentionFunction = std::function<at::Tensor(const at::Tensor& query, const at::Tensor& key,
                                                   const at::Tensor& value, const Visible&)>;

at::Tensor NaiveSoftmax(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                        const Visible& visible);
at::Tensor NaiveEfficient(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                          const Visible& visible);
at::Tensor NaiveKernel(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                       const Visible& visible);  // without a denominator
at::Tensor NaiveKernelNormalized(const at::Tensor& query, const at::Tensor& key,
                                 const at::Tensor& value, const Visible& visible);
at::Tensor NaiveTaylor(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                       const Visible& visible);

}  // namespace linserve
