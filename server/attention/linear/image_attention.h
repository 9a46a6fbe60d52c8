#pragma once

#include <ATen/core/Tensor.h>

namespace linserve {

// Computes efficient attention over the positions of an image, heads [images, heads, features,
// positions]:
//   context[d, e] = sum over positions of softmax_positions(keys[d, :]) · values[e, :]
//   result[e, p] = sum over d of context[d, e] · softmax_features(queries[:, p])[d]
// O(positions · d · e) for each head. Source: Shen et al. 2018 (arXiv:1812.01243), as in
// linear-attention-transformer 0.19.1, ImageLinearAttention.

// Sums up the context, from keys and values that come in stripes of positions.
class ImageContext {
 public:
  // Takes keys [images, heads, d, positions] and values [images, heads, e, positions].
  void Add(const at::Tensor& keys, const at::Tensor& values);

  // Returns [images, heads, d, e], in F32. REQUIRES: something was added.
  const at::Tensor& Sum() const { return sum_; }

 private:
  at::Tensor sum_;       // of the stripes so far, normalised
  at::Tensor log_mass_;  // [images, heads, d, 1]: log of the sum of exp(key) so far
};

// Takes queries [images, heads, d, positions] and context [images, heads, d, e], and returns
// [images, heads, e, positions] in the type of the queries. Without `normalize` the queries are
// taken as they are.
at::Tensor AttendToContext(const at::Tensor& queries, const at::Tensor& context, bool normalize);

}  // namespace linserve
