#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "attention/blocks/block_feature_attention.h"
#include "attention/blocks/block_features.h"

namespace linserve {

// Computes BlockFeatureAttention of one sequence whose queries and keys are mapped to features
// here. Rows are [count, heads · width], F32 on the CPU. A row that nothing sees has the lowest
// number as its keys and zeros as its values.
class BlockMappedAttention {
 public:
  // REQUIRES: sizes.features are those of the map.
  BlockMappedAttention(const BlockFeatures& map, const BlockFeatureAttention::Sizes& sizes);

  void Begin();

  // Takes all keys and values, on all threads, before any query attends.
  void Add(const RowBlock& keys, const RowBlock& values, int64_t count);
  void Finish() {}
  // out = the attention of a block of queries.
  void Attend(const RowBlock& queries, int64_t count, const RowBlock& out, float* scratch) const;
  int64_t ScratchElements() const;

  // Takes the next rows of causal attention, on all threads. The results take the place of the
  // queries, and the values are overwritten.
  void Attend(const RowBlock& queries, const RowBlock& keys, const RowBlock& values, int64_t count);

 private:
  int64_t inner() const { return sizes_.heads * sizes_.features; }
  // Returns the features of rows, which stay in `memory`.
  RowBlock Map(const RowBlock& rows, int64_t count, at::Tensor& memory) const;

  BlockFeatures map_;
  BlockFeatureAttention::Sizes sizes_;
  BlockFeatureAttention attention_;
  at::Tensor sums_;
  at::Tensor queries_, keys_;  // scratch: features
};

}  // namespace linserve
