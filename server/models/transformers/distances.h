#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace linserve::transformers {

// Returns what MPNet adds to scores by the distance from query to key, [heads, 2 · longest - 1] for
// distances from 1 - longest on, of its table [buckets, heads].
at::Tensor ByDistance(const at::Tensor& table, int64_t longest);

}  // namespace linserve::transformers
