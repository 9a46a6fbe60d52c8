#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace linserve::transformers {

// Says what disentangled attention (He et al. 2020, arXiv:2006.03654) makes of the positions of
// queries and keys to each other.
struct RelativePositions {
  int64_t span = 0;         // of the table, which has twice as many rows; 0: there is none
  int64_t buckets = 0;      // beyond half of so many rows positions share buckets; 0: they do not
  int64_t furthest = 0;     // positions from the one before it on have the last bucket
  bool of_queries = false;  // queries meet positions as keys (c2p)
  bool of_keys = false;     // keys meet positions as queries (p2c)
  bool shared = false;      // positions go through the layer's own query and key
  bool biased_keys = true;  // where they are projected apart
  bool normed = false;      // the table goes through a norm

  bool defined() const { return span > 0; }
  int64_t rows() const { return 2 * span; }
  // Says up to which distance each has a place of its own.
  int64_t straight() const { return buckets > 0 ? buckets / 2 : span - 1; }
};

// Returns the place of each distance from query to key, from 1 - longest to longest - 1, in the
// table whose rows are in reverse: I32 [2 · longest - 1] on the CPU, which do not decrease.
at::Tensor PlacesByDistance(const RelativePositions& positions, int64_t longest);

}  // namespace linserve::transformers
