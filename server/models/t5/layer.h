#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "models/network/layers.h"
#include "models/t5/attention.h"
#include "models/t5/context.h"
#include "models/t5/options.h"

namespace linserve::t5 {

// Is a layer of the encoder: x += attention(norm(x)), then x += feed-forward(norm(x)).
class Layer {
 public:
  // `index` counts from 0.
  Layer(const Options& options, int64_t index);

  void Declare(const Scope& layer);
  double Flops(int64_t length) const;
  const Attention& attention() const { return attention_; }

  // Applies it to rows [rows, dim] in place.
  void Apply(at::Tensor& rows, const Context& context) const;

 private:
  void ApplyByBlocks(at::Tensor& rows, const Context& context) const;

  Options options_;
  Attention attention_;
  LayerNorm attention_norm_;
  FeedForward feed_forward_;
  LayerNorm inner_norm_;
};

}  // namespace linserve::t5
