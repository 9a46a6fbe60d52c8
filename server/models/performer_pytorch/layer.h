#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "models/network/layers.h"
#include "models/network/sequences.h"
#include "models/performer_pytorch/attention.h"
#include "models/performer_pytorch/options.h"

namespace linserve::performer_pytorch {

// Is a branch of a layer but for its module: a norm before it or a factor after it (ReZero), and a
// shift of tokens.
class Branch {
 public:
  explicit Branch(const Options& options);

  // Declares the branch around the module whose last linear layer is `outputs`, and returns the
  // module's scope. The module must be declared after it.
  Scope Declare(const Scope& scope, bool shifted, Linear& outputs);

  // Returns the norm; nullptr: there is none.
  const LayerNorm* norm() const { return kind_ == Options::Norm::kReZero ? nullptr : &norm_; }

 private:
  Options::Norm kind_;
  LayerNorm norm_;
  at::Tensor factor_;  // []; undefined once the outputs are multiplied by it
};

// Is one layer: attention, to the rows themselves or to a context, and feed-forward.
class Layer {
 public:
  enum class Kind : uint8_t { kSelf, kContext };

  // `step` is that of the depth, counted from 0.
  Layer(const Options& options, Kind kind, int64_t step);

  void Declare(const Scope& attention, const Scope& feed_forward);

  // Adds attention(norm(source)) to the target, then feed_forward(norm(target)) to the source. They
  // may be the same tensor.
  void Apply(at::Tensor& source, const Sequences& sequences, at::Tensor& target) const;

  // Says what it keeps of a sequence that comes chunk by chunk.
  std::vector<StateSlot> State() const;

  // Counts additions and multiplications for a sequence of `rows` rows and a context of
  // `context_rows`.
  double Flops(int64_t rows, int64_t context_rows) const;

 private:
  // `then` follows on each block of the target's rows.
  void AddAttention(const at::Tensor& source, const Sequences& sequences, at::Tensor& target,
                    const BlockStep& then) const;
  // Does what AddAttention() does, for the next rows of sequences.
  void AddNextAttention(const at::Tensor& source, const Sequences& sequences,
                        at::Tensor& target) const;
  void AddFeedForward(const at::Tensor& source, const Sequences& sequences,
                      at::Tensor& target) const;
  // Masked rows pass nothing on to their neighbours where there is a mask.
  at::Tensor Shifted(const at::Tensor& rows, const Sequences& sequences,
                     const at::Tensor& mask) const;

  Kind kind_;
  int64_t dim_;
  std::vector<int64_t> shifts_;  // of tokens; empty: none
  Branch attending_;
  Attention attention_;
  Branch feeding_;
  FeedForward feed_forward_;
};

}  // namespace linserve::performer_pytorch
