#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

namespace linserve {

// These functions compute softmax attention as tensors, on any device, where something is added to
// the scores.

// Returns what hides keys that are not `visible` (BOOL) when it is added to scores of a type.
at::Tensor ScoresOfVisible(const at::Tensor& visible, at::ScalarType scores);

// Says which rows of sequences see a visible row in their windows, so many rows `before` and
// `after` them (-1: all): BOOL, as `visible` [count, length].
at::Tensor SeeAny(const at::Tensor& visible, int64_t before, int64_t after);

// Attends by queries [count, heads, length, dim_head] to keys and values of this shape, whose
// length may be another. added(first, some) says what is added to the scaled scores of queries
// [first, first + some), as far as it broadcasts; undefined: nothing is. Where it holds so many
// matrices of all pairs of rows a few queries are computed at a time; 0: all at once.
at::Tensor AttendByParts(const at::Tensor& queries, const at::Tensor& keys,
                         const at::Tensor& values, double scale, int64_t matrices,
                         const std::function<at::Tensor(int64_t first, int64_t some)>& added);

// Attends by such queries to keys and values [count, key heads, length, dim_head], where scaled
// scores s are cap · tanh(s / cap) (Gemma Team 2024, arXiv:2408.00118). They are computed in F32
// and for a few queries at a time. `visible` (BOOL) says which keys they see, as far as it
// broadcasts to [count, heads, length, length]; undefined: all.
at::Tensor AttendCapped(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                        double scale, double cap, const at::Tensor& visible);

}  // namespace linserve
