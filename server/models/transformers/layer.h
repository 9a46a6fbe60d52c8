#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "models/network/layers.h"
#include "models/transformers/attention.h"
#include "models/transformers/experts/experts.h"
#include "models/transformers/names.h"
#include "models/transformers/row_convolution.h"

namespace linserve::transformers {

// Is a layer of any of these models: with norms behind the two sums, x = norm(x + attention(x)), or
// with norms before attention and feed-forward, x += attention(norm(x)).
class Layer {
 public:
  Layer(const Options& options, const LayerKind& kind, bool first);

  // `positions` is the table of relative positions, as Attention takes it.
  void Declare(const Scope& layer, const at::Tensor& positions);
  // Declares the first layer's convolution, where there is one.
  void DeclareConvolution(const Scope& scope) {
    if (convolution_) convolution_->Declare(scope);
  }
  double Flops(int64_t length) const;

  // Applies it to rows [rows, dim] in place.
  void Apply(at::Tensor& rows, const Context& context) const;

 private:
  bool packed() const {
    return attention_.packed() && (experts_ ? experts_->packed() : feed_forward_.packed());
  }
  // Where the embeddings have a norm, the first layer may have none before attention.
  bool unnormed() const { return first_ && options_.first_unnormed; }
  const LayerNorm* NormBefore() const {
    return options_.pre_norm && !unnormed() ? &attention_norm_ : nullptr;
  }

  void DeclareFeedForward(const Scope& layer);
  bool norms_again() const { return NamesOf(options_.family).again_norm != nullptr; }

  void ApplyToTensors(at::Tensor& rows, const Context& context) const;
  void ApplyByBlocks(at::Tensor& rows, const Context& context) const;
  // Takes a block from its attended values to the end of the layer.
  void Finish(const RowBlock& rows, const RowBlock& attended, int64_t count, float* scratch,
              const Context& context) const;
  int64_t ScratchElements(const Context& context) const;

  Options options_;
  bool first_;
  Attention attention_;
  LayerNorm attention_norm_;
  LayerNorm again_norm_;  // where there is a second one, of a second sum
  FeedForward feed_forward_;
  std::optional<Experts> experts_;  // in the place of that
  LayerNorm inner_norm_;
  std::optional<RowConvolution> convolution_;  // of the rows that the layer reads, behind it
};

}  // namespace linserve::transformers
