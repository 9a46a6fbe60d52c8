#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "models/linear_attention_transformer/attention.h"
#include "models/linear_attention_transformer/options.h"
#include "models/linear_attention_transformer/product_key_memory.h"
#include "models/linformer/attention.h"
#include "models/network/layers.h"
#include "models/network/sequences.h"

namespace linserve::linear_attention_transformer {

// Is one layer: a pair of pre-norm branches, attention and feed-forward.
class Layer {
 public:
  // A step of the depth has a main layer, then an axial one and one for the context where they are
  // asked for.
  enum class Kind : uint8_t { kMain, kAxial, kContext };

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
  using AnyAttention = std::variant<Attention, ProjectedAttention>;
  using FeedForwardOrMemory = std::variant<FeedForward, ProductKeyMemory>;

  // `then` follows on each block of the target's rows.
  void AddAttention(const at::Tensor& source, const Sequences& sequences, at::Tensor& target,
                    const BlockStep& then) const;
  // Does what AddAttention() does, for the next rows of sequences.
  void AddNextAttention(const at::Tensor& source, const Sequences& sequences,
                        at::Tensor& target) const;
  at::Tensor Shifted(const at::Tensor& rows, const Sequences& sequences) const;
  void AddFeedForward(const at::Tensor& source, const Sequences& sequences,
                      at::Tensor& target) const;
  bool WorksByBlocks() const;

  static AnyAttention MakeAttention(const Options& options, Kind kind, int64_t step);
  static FeedForwardOrMemory MakeFeedForward(const Options& options, Kind kind, int64_t step);

  Kind kind_;
  int64_t dim_;
  bool shifted_;
  bool causal_;
  LayerNorm attention_norm_;
  AnyAttention attention_;
  LayerNorm feed_forward_norm_;
  FeedForwardOrMemory feed_forward_;
};

}  // namespace linserve::linear_attention_transformer
