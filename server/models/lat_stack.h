#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <vector>

#include "models/lat_layer.h"
#include "models/lat_options.h"

namespace linserve {

// The layers of LinearAttentionTransformer: pre-norm, without a final norm, plain or reversible.
class LatStack {
 public:
  explicit LatStack(const LatOptions& options);

  void Declare(const Scope& scope);

  int64_t Layers() const { return std::ssize(layers_); }

  // Of a sequence of `rows` rows and a context of `context_rows`.
  double Flops(int64_t rows, int64_t context_rows) const;

  // What it keeps of a sequence that comes chunk by chunk. REQUIRES: options without a
  // SessionRefusal().
  std::vector<StateSlot> State() const;

  // The stack applied to rows [rows, dim], a layer a step.
  class Run {
   public:
    // Takes over `rows`. `stack` must outlive the run.
    Run(const LatStack& stack, at::Tensor rows, LatSequences sequences);

    bool Step();        // false once every layer is done
    at::Tensor Take();  // REQUIRES: Step() returned false

   private:
    const LatStack& stack_;
    LatSequences sequences_;
    at::Tensor stream_;         // x; reversible: v
    at::Tensor second_stream_;  // reversible: u
    size_t layer_ = 0;
  };

 private:
  bool reversible_;
  std::deque<LatLayer> layers_;
};

}  // namespace linserve
