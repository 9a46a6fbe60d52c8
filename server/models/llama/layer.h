#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "models/llama/attention.h"
#include "models/llama/context.h"
#include "models/llama/options.h"
#include "models/llama/short_convolution.h"
#include "models/network/layers.h"

namespace linserve::llama {

// Is a layer of any of these models: x += attention(norm(x)), then x += feed-forward(norm(x)), or
// with norms behind them x += norm(attention(norm(x))) and so on, or with those alone.
// In the place of attention there may be a short convolution.
class Layer {
 public:
  Layer(const Options& options, const LayerKind& kind);

  void Declare(const Scope& layer);
  double Flops(int64_t length) const;

  // Applies it to rows [rows, dim] in place.
  void Apply(at::Tensor& rows, const Context& context) const;

 private:
  // Returns the norm before attention or feed-forward; nullptr where there is none.
  const LayerNorm* Before(const LayerNorm& norm) const {
    return options_.norms_before ? &norm : nullptr;
  }
  bool packed() const {
    return (convolution_ ? convolution_->packed() : attention_.packed()) && feed_forward_.packed();
  }
  const Linear& out() const { return convolution_ ? convolution_->out() : attention_.out(); }
  // Returns the rows as attention, or the convolution, reads them.
  NormedRows Read(const at::Tensor& rows, const Context& context) const;
  void ApplyToTensors(at::Tensor& rows, const Context& context) const;
  void AttendByBlocks(const at::Tensor& rows, const Context& context) const;
  void ConvolveByBlocks(const at::Tensor& rows, const Context& context) const;
  // Takes a block from its attended values to the end of the layer.
  void Finish(const RowBlock& rows, const RowBlock& attended, int64_t count, float* scratch) const;
  void FinishBehindNorms(const RowBlock& rows, const RowBlock& attended, int64_t count,
                         float* scratch) const;
  // Returns the scratch that a block of what is added to the rows does not lie in.
  int64_t ElementsBeforeAdded() const;
  int64_t FinishElements() const;

  Options options_;
  Attention attention_;
  std::optional<ShortConvolution> convolution_;  // in its place
  LayerNorm attention_norm_;
  LayerNorm attended_norm_;  // behind the attention
  FeedForward feed_forward_;
  LayerNorm inner_norm_;
  LayerNorm outer_norm_;  // behind the feed-forward
};

}  // namespace linserve::llama
