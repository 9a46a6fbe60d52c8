#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "attention/linear/random_features.h"
#include "attention/products/block_product.h"

namespace linserve {

// Makes random features (attention/linear/random_features.h) of blocks of one head's rows, F32 on
// the CPU, without their ratio: of queries, each shifted by its own largest u, and of keys, all of
// them shifted by the largest of them. So eps means what it means in performer-pytorch. Features of
// queries lie in rows, those of keys in columns: so both products that they go into are of matrices
// as they lie.
class StabilizedFeatures {
 public:
  StabilizedFeatures() = default;
  // REQUIRES: a map that is not mirrored.
  explicit StabilizedFeatures(const RandomFeatures& features);

  int64_t features() const { return projection_.size(0); }
  bool is_positive() const { return map_.map == RandomFeatures::Map::kPositive; }
  // Says that keys of all heads are shifted by the largest u of them all.
  bool heads_share_shift() const { return is_positive() && map_.heads_share_shift; }
  float eps() const { return static_cast<float>(map_.eps); }
  double ratio() const { return map_.ratio; }

  // Sets out [count, features] to what OfShiftedRows() gives. `offsets` is scratch of `count`
  // elements.
  void SetQueries(const RowBlock& queries, int64_t count, const RowBlock& out,
                  float* offsets) const;

  // A block of keys takes two steps, since the keys' shift is the largest u of them all.
  // SetDirections() sets out [features, count] to u, and offsets [count] to |scale · key|²/2 where
  // they are needed. It writes up to kBlockRows columns of `out`, and has scratch of
  // TurnedElements().
  void SetDirections(const RowBlock& keys, int64_t count, const RowBlock& out, float* offsets,
                     float* scratch) const;
  int64_t TurnedElements() const { return projection_.size(1) * kTransposedStride; }
  // Returns the largest of what SetDirections() has set.
  static float Largest(const RowBlock& directions, int64_t features, int64_t count);
  // Makes the features of u: exp(u − offset − shift) + eps, or kernel(u) + eps.
  void SetKeys(const RowBlock& directions, int64_t count, float* offsets, float shift,
               float eps) const;

 private:
  RandomFeatures map_;
  at::Tensor projection_;  // scale · projection [features, width]
  at::Tensor turned_;      // its transpose
};

// Adds the sum of each row of [count, width] to `sums` [count].
void AddSums(const RowBlock& rows, int64_t count, int64_t width, float* sums);

}  // namespace linserve
