#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "attention/rows/placed_layout.h"
#include "models/fairseq/options.h"
#include "models/network/layers.h"
#include "models/network/projected_attention.h"

namespace linserve::fairseq {

// Is LinformerTransformerEncoderLayer: a layer of RoBERTa whose input is compressed along the
// length before it becomes keys and values.
class Layer {
 public:
  // `shared` is the one matrix of all layers; null: the layer has its own.
  Layer(const Options& options, const std::shared_ptr<LengthMatrix>& shared);

  void Declare(const Scope& layer);
  double Flops(int64_t length) const;

  // Applies it to rows [rows, dim] in place.
  void Apply(at::Tensor& rows, const PlacedLayout& layout) const;

 private:
  void ApplyByBlocks(at::Tensor& rows, const PlacedLayout& layout) const;
  void ApplyToTensors(at::Tensor& rows, const PlacedLayout& layout) const;

  bool pre_norm_;
  ProjectedAttention attention_;
  LayerNorm attention_norm_;
  FeedForward feed_forward_;
  LayerNorm final_norm_;
};

}  // namespace linserve::fairseq
