#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace linserve {

// Holds the rows of a sequence that later ones may still see through local attention: those of two
// windows. The row of position p is at p mod (2 · window). F32 [sequences, heads, 2 · window,
// dim_head]; whatever was not read yet must be finite.
struct WindowRows {
  at::Tensor keys;
  at::Tensor values;
};

// Computes the causal LocalAttention() (attention/local/local_attention.h) of the next rows of
// sequences of which `positions` rows have been read, one number a sequence. `seen` is updated in
// place. queries, keys, values and `out`, which is written, [sequences, heads, n, dim_head]; any
// strides and types, computed in F32. O(n · window · dim_head) a head.
void ContinueLocalAttention(const at::Tensor& queries, const at::Tensor& keys,
                            const at::Tensor& values, const std::vector<int64_t>& positions,
                            int64_t window, const WindowRows& seen, const at::Tensor& out);

// Does this for the row at `position` of one sequence: queries, keys, values and `out` [heads, 1,
// dim_head], `seen` [heads, 2 · window, dim_head]. Only the row's own place in `seen` changes, of
// which neither this row nor a later one sees the old contents: so doing it again gives the same.
void StepLocalAttention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                        int64_t position, int64_t window, const WindowRows& seen,
                        const at::Tensor& out);

}  // namespace linserve
