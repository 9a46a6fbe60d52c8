#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>

#include "models/linformer/attention.h"
#include "models/network/layers.h"
#include "models/network/parameters.h"
#include "models/network/residual_streams.h"

namespace linserve::linformer {

// Is the stack of linformer.Linformer: pre-norm layers without a final norm, plain or reversible.
class Stack {
  struct Layer;

 public:
  Stack(const AttentionOptions& options, int64_t depth, bool reversible);

  void Declare(const Scope& scope);
  double Flops(int64_t length) const;

  // Applies the stack to rows [rows, dim], a layer a step.
  class Steps {
   public:
    // Takes over `rows`. `stack` must outlive them.
    Steps(const Stack& stack, at::Tensor rows, PlacedLayout layout);

    bool Step();        // false once every layer is done
    at::Tensor Take();  // REQUIRES: Step() returned false

   private:
    void ApplyWithoutBiases(const Layer& layer);

    const Stack& stack_;
    PlacedLayout layout_;
    ResidualStreams streams_;
    size_t layer_ = 0;
  };

 private:
  struct Layer {
    LayerNorm attention_norm;
    ProjectedAttention attention;
    LayerNorm feed_forward_norm;
    FeedForward feed_forward;
    // Are the sums of all biases that the rows lack when they come to the norms.
    at::Tensor before_attention{};
    at::Tensor before_feed_forward{};
  };

  // On a device the products of a plain stack add themselves to its rows, without their biases,
  // which the norms add to what they read. So rows are read and written half as often.
  void SumBiases();

  bool reversible_;
  at::Tensor biases_;  // of the whole stack; undefined: the rows lack none
  std::deque<Layer> layers_;
};

}  // namespace linserve::linformer
