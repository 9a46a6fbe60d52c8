#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <vector>

#include "models/network/residual_streams.h"
#include "models/performer_pytorch/layer.h"
#include "models/performer_pytorch/options.h"

namespace linserve::performer_pytorch {

// Is performer_pytorch.Performer: its layers, plain or reversible, without a last norm.
class Stack {
 public:
  explicit Stack(const Options& options);

  // Declares the layers, also under the second name that the module which counts forward passes
  // gives them.
  void Declare(const Scope& scope);

  int64_t Layers() const { return std::ssize(layers_); }
  double Flops(int64_t rows, int64_t context_rows) const;
  // Says what it keeps of a sequence that comes chunk by chunk. REQUIRES: options without a
  // SessionRefusal().
  std::vector<StateSlot> State() const;

  // Applies the stack to rows [rows, dim], a layer a step.
  class Steps {
   public:
    // Takes over `rows`. `stack` must outlive them.
    Steps(const Stack& stack, at::Tensor rows, Sequences sequences);

    bool Step();                                      // false once every layer is done
    at::Tensor Take() { return streams_.TakeSum(); }  // REQUIRES: Step() returned false

   private:
    const Stack& stack_;
    Sequences sequences_;
    ResidualStreams streams_;
    size_t layer_ = 0;
  };

 private:
  void DeclareLayers(const Scope& scope);

  bool reversible_;
  std::deque<Layer> layers_;
};

}  // namespace linserve::performer_pytorch
