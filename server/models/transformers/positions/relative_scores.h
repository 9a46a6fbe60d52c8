#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "attention/blocks/block_relative_scores.h"
#include "models/network/layers.h"
#include "models/transformers/positions/relative_positions.h"

namespace linserve::transformers {

// Makes what a layer's disentangled attention adds to scores, of the table of positions that all
// layers share.
class RelativeScores {
 public:
  RelativeScores(const RelativePositions& positions, int64_t dim, int64_t heads);

  bool defined() const {
    return positions_.defined() && (positions_.of_queries || positions_.of_keys);
  }

  // Declares the projections of positions as keys and as queries, but where they are the layer's.
  void Declare(const Scope& key, const Scope& query);
  // Projects the table [rows, dim]. `query` and `key` are the layer's, before they are joined; the
  // products with blocks are as `rounded` as those of scores.
  void Prepare(const at::Tensor& table, const Linear& query, const Linear& key, bool rounded);

  // Is what blocks of queries and keys take, where the table is F32 on the CPU.
  const BlockRelativeScores& blocks() const { return blocks_; }

  // Returns, on any device, what is added to the products of queries [count, heads, some,
  // dim_head], from their sequence's row `first` on, with keys [count, heads, length, dim_head].
  // `places` are those of PlacesByDistance().
  at::Tensor operator()(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& places,
                        int64_t first) const;

  double Flops(int64_t length) const;  // of a row

 private:
  RelativePositions positions_;
  int64_t heads_;
  Linear key_, query_;
  at::Tensor as_keys_, as_queries_;  // [heads, positions, dim_head], in reverse
  BlockRelativeScores blocks_;
};

}  // namespace linserve::transformers
