#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <vector>

#include "models/linear_attention_transformer/layer.h"
#include "models/linear_attention_transformer/options.h"
#include "models/network/residual_streams.h"

namespace linserve::linear_attention_transformer {

// Holds the layers of LinearAttentionTransformer: pre-norm, without a final norm, plain or
// reversible.
class Stack {
 public:
  explicit Stack(const Options& options);

  void Declare(const Scope& scope);

  int64_t Layers() const { return std::ssize(layers_); }

  // Counts additions and multiplications for a sequence of `rows` rows and a context of
  // `context_rows`.
  double Flops(int64_t rows, int64_t context_rows) const;

  // Says what it keeps of a sequence that comes chunk by chunk. REQUIRES: options without a
  // SessionRefusal().
  std::vector<StateSlot> State() const;

  // Applies the stack to rows [rows, dim], a layer a step.
  class Steps {
   public:
    // Takes over `rows`. `stack` must outlive them.
    Steps(const Stack& stack, at::Tensor rows, Sequences sequences);

    bool Step();                                       // false once every layer is done
    at::Tensor Take() { return streams_.TakeMean(); }  // REQUIRES: Step() returned false

   private:
    const Stack& stack_;
    Sequences sequences_;
    ResidualStreams streams_;
    size_t layer_ = 0;
  };

 private:
  bool reversible_;
  std::deque<Layer> layers_;
};

}  // namespace linserve::linear_attention_transformer
