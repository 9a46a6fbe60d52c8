#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <utility>
#include <vector>

#include "models/network/parameters.h"
#include "models/network/residual_streams.h"
#include "models/network/sequences.h"
#include "models/sessions/session_plan.h"

namespace linserve {

// Holds layers of attention and feed-forward, plain or reversible, as linear-attention-transformer
// and performer-pytorch chain them.
template <typename Layer>
class LayerStack {
 public:
  explicit LayerStack(bool reversible) : reversible_(reversible) {}

  // Appends a layer made of these arguments.
  template <typename... Arguments>
  void Add(const Arguments&... arguments) {
    layers_.emplace_back(arguments...);
  }

  void Declare(const Scope& scope) {
    const Scope all = scope / (reversible_ ? "blocks" : "layers");
    for (size_t i = 0; i < layers_.size(); ++i) {
      const Scope layer = all / static_cast<int64_t>(i);
      if (reversible_) {
        layers_[i].Declare(layer / "f" / "net", layer / "g" / "net");
      } else {
        layers_[i].Declare(layer / "0", layer / "1");
      }
    }
  }

  int64_t Layers() const { return std::ssize(layers_); }

  // Counts additions and multiplications for a sequence of `rows` rows and a context of
  // `context_rows`.
  double Flops(int64_t rows, int64_t context_rows) const {
    double flops = 0;
    for (const Layer& layer : layers_) flops += layer.Flops(rows, context_rows);
    return flops;
  }

  // Says what it keeps of a sequence that comes chunk by chunk. REQUIRES: options without a
  // SessionRefusal().
  std::vector<StateSlot> State() const {
    std::vector<StateSlot> state;
    for (const Layer& layer : layers_) {
      for (StateSlot& slot : layer.State()) state.push_back(std::move(slot));
    }
    return state;
  }

  // Applies the stack to rows [rows, dim], a layer a step.
  class Steps {
   public:
    // Takes over `rows`. `stack` must outlive them.
    Steps(const LayerStack& stack, at::Tensor rows, Sequences sequences)
        : stack_(stack),
          sequences_(std::move(sequences)),
          streams_(std::move(rows), stack.reversible_) {}

    // Is false once every layer is done.
    bool Step() {
      const Layer& layer = stack_.layers_[layer_++];
      layer.Apply(streams_.v(), sequences_, streams_.u());
      return layer_ < stack_.layers_.size();
    }

    // What the layers have made. REQUIRES: Step() returned false.
    ResidualStreams& streams() { return streams_; }

   private:
    const LayerStack& stack_;
    Sequences sequences_;
    ResidualStreams streams_;
    size_t layer_ = 0;
  };

 private:
  bool reversible_;
  std::deque<Layer> layers_;
};

}  // namespace linserve
