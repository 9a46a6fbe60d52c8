#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace linserve {

// These say what is added to scores by the distance from query to key: [heads, 2 · longest - 1],
// for distances from 1 - longest on.

// Returns it of a table [buckets, heads], half of whose buckets are for either direction, and half
// of these for a single distance each; `furthest` and all beyond share the last one. It is T5's
// (Raffel et al. 2019, arXiv:1910.10683) and MPNet's.
at::Tensor ByDistance(const at::Tensor& table, int64_t longest, int64_t furthest);

// Returns ALiBi's slopes of heads (Press et al. 2021, arXiv:2108.12409): F32 [heads], on the host.
at::Tensor AlibiSlopes(int64_t heads);

// Returns what ALiBi adds for either direction: a slope of each head times the distance, negative.
at::Tensor Alibi(const at::Tensor& slopes, int64_t longest);

// Returns what is added of these to scores of `count` queries, from their sequence's row `first`
// on, with all of its `length` keys: [heads, count, length].
at::Tensor ScoresByDistance(const at::Tensor& distances, int64_t first, int64_t count,
                            int64_t length);

}  // namespace linserve
