#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

namespace linserve {

// These functions compute softmax attention as tensors, on any device, where something is added to
// the scores.

// Returns what hides keys that are not `visible` (BOOL) when it is added to scores of a type.
at::Tensor ScoresOfVisible(const at::Tensor& visible, at::ScalarType scores);

// Attends by queries [count, heads, length, dim_head] to keys and values of this shape.
// added(first, some) says what is added to the scaled scores of queries [first, first + some), as
// far as it broadcasts; undefined: nothing is. Where it holds so many matrices of all pairs of rows
// a few queries are computed at a time; 0: all at once.
at::Tensor AttendByParts(const at::Tensor& queries, const at::Tensor& keys,
                         const at::Tensor& values, double scale, int64_t matrices,
                         const std::function<at::Tensor(int64_t first, int64_t some)>& added);

}  // namespace linserve
