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
 public:
  Stack(const AttentionOptions& options, int64_t depth, bool reversible);

  void Declare(const Scope& scope);
  double Flops(int64_t length) const;

  // Applies the stack to rows [rows, dim], a layer a step.
  class Steps {
   public:
    // Takes over `rows`. `stack` must outlive them.
    Steps(const Stack& stack, at::Tensor rows, PlacedLayout layout);

    bool Step();                                      // false once every layer is done
    at::Tensor Take() { return streams_.TakeSum(); }  // REQUIRES: Step() returned false

   private:
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
  };

  bool reversible_;
  std::deque<Layer> layers_;
};

}  // namespace linserve::linformer
