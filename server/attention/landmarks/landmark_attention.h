#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace linserve {

// These functions approximate softmax attention by landmarks, the means of equal segments of a
// sequence's queries and keys. Tensors are [..., heads, rows, width].
// Source: Xiong et al. 2021, "Nyströmformer" (arXiv:2102.03902), equations 13 to 15, as
// transformers 5.24.0 computes them.

// Returns the mean of each of so many equal segments of the rows: [..., count, width].
// REQUIRES: `count` divides the rows.
at::Tensor SegmentMeans(const at::Tensor& rows, int64_t count);

// Returns what the landmarks of keys weigh in place of values:
//   pseudo-inverse(softmax(queries · keysᵀ / sqrt(width))) · attended
// queries, keys [..., heads, landmarks, width], and attended [..., heads, landmarks, width], which
// is softmax attention of the queries to all rows, -> [..., heads, landmarks, width], computed in
// F64 and returned in the type of `attended`.
// The inverse is what six steps of an iteration reach (Razavi et al. 2014). They begin at the
// transpose divided by the largest column sum of the head or, unless `by_head`, of all heads.
// O(heads · landmarks³).
at::Tensor LandmarkValues(const at::Tensor& queries, const at::Tensor& keys,
                          const at::Tensor& attended, bool by_head);

// Computes attention by `landmarks` landmarks. `mask`, undefined or as far as it broadcasts to
// [..., heads, landmarks, rows], is added to the scores of keys; the means are of all rows. It sums
// in F32 at least, and the result is of the values' type.
// O(rows · landmarks · width) for each head.
at::Tensor LandmarkAttention(const at::Tensor& queries, const at::Tensor& keys,
                             const at::Tensor& values, const at::Tensor& mask, int64_t landmarks,
                             bool by_head);

// Convolves rows [count, heads, rows, width] with a kernel [heads, 1, size, 1] for each head, of
// odd size and centred, as if zeros were around them.
at::Tensor ConvolveRows(const at::Tensor& rows, const at::Tensor& kernel);

}  // namespace linserve
