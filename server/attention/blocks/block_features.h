#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "attention/linear/random_features.h"
#include "attention/products/block_math.h"

namespace linserve {

// Makes the features of all heads of a block of rows, F32 on the CPU: random ones
// (attention/linear/random_features.h), without a shift, elu + 1, or those of Taylor's series.
class BlockFeatures {
 public:
  // Makes features elu(x) + 1 of heads of this width.
  explicit BlockFeatures(int64_t width) : width_(width), features_(width) {}
  explicit BlockFeatures(const RandomFeatures& random);
  // Makes features 1 and x over its length (attention/linear/taylor_attention.h), and zeros of
  // heads that begin with the lowest number.
  static BlockFeatures Taylor(int64_t width);

  int64_t features() const { return features_; }  // of a head

  // Makes out [count, heads · features] of rows [count, heads · width].
  void Set(const RowBlock& rows, int64_t count, int64_t heads, const RowBlock& out) const;

 private:
  void SetHead(const RowBlock& rows, int64_t count, const RowBlock& out) const;
  void SetTaylor(const RowBlock& rows, int64_t count, const RowBlock& out) const;
  // These two make features of u, which stands where the first of them belong.
  void Exponentiate(const RowBlock& rows, int64_t count, const RowBlock& out) const;
  void TakeCosines(int64_t count, const RowBlock& out) const;

  int64_t width_;
  int64_t features_;
  bool taylor_ = false;
  RandomFeatures random_{};
  at::Tensor directions_;  // scale · projectionᵀ [width, directions]; undefined: others
};

}  // namespace linserve
