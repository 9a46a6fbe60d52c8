#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace linserve::transformers {

// Returns what MPNet adds to scores by the distance from query to key, [heads, 2 · longest - 1] for
// distances from 1 - longest on, of its table [buckets, heads].
at::Tensor ByDistance(const at::Tensor& table, int64_t longest);

// Returns what ALiBi (Press et al. 2021, arXiv:2108.12409) adds to scores for either direction, of
// the same shape: a slope of each head times the distance, negative.
at::Tensor Alibi(int64_t heads, int64_t longest, const at::TensorOptions& options);

}  // namespace linserve::transformers
