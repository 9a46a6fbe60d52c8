#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "models/lat_attention.h"
#include "models/lat_options.h"
#include "models/layers.h"
#include "models/linformer_modules.h"
#include "models/product_key_memory.h"

namespace linserve {

// What layers read beside the rows that they add to.
struct LatSequences {
  MaskedLayout own;
  at::Tensor context;  // [context rows, dim], of networks that receive one
  MaskedLayout context_layout;
  at::Tensor rotary;  // table of positions; undefined: none
  // Of sequences that come chunk by chunk: then `rotary` has a row for each of the rows. Else null.
  std::shared_ptr<SessionMemory> memory;
};

// One pair of pre-norm branches: attention and feed-forward.
class LatLayer {
 public:
  // A depth step has a main layer, then an axial one and one for the context where they are asked.
  enum class Kind : uint8_t { kMain, kAxial, kContext };

  // `step`: of the depth, from 0.
  LatLayer(const LatOptions& options, Kind kind, int64_t step);

  void Declare(const Scope& attention, const Scope& feed_forward);

  // target += attention(norm(source)), then source += feed_forward(norm(target)). They may be the
  // same tensor.
  void Apply(at::Tensor& source, const LatSequences& sequences, at::Tensor& target) const;

  // What it keeps of a sequence that comes chunk by chunk.
  std::vector<StateSlot> State() const;

  // Of a sequence of `rows` rows and a context of `context_rows`.
  double Flops(int64_t rows, int64_t context_rows) const;

 private:
  using Attention = std::variant<LatAttention, LinformerSelfAttention>;
  using FeedForwardOrMemory = std::variant<FeedForward, ProductKeyMemory>;

  // `then` follows on each block of the target's rows.
  void AddAttention(const at::Tensor& source, const LatSequences& sequences, at::Tensor& target,
                    const BlockStep& then) const;
  // The same for the next rows of sequences.
  void AddNextAttention(const at::Tensor& source, const LatSequences& sequences,
                        at::Tensor& target) const;
  at::Tensor Shifted(const at::Tensor& rows, const LatSequences& sequences) const;
  void AddFeedForward(const at::Tensor& source, const LatSequences& sequences,
                      at::Tensor& target) const;
  bool WorksByBlocks() const;

  static Attention MakeAttention(const LatOptions& options, Kind kind, int64_t step);
  static FeedForwardOrMemory MakeFeedForward(const LatOptions& options, Kind kind, int64_t step);

  Kind kind_;
  int64_t dim_;
  bool shifted_;
  bool causal_;
  LayerNorm attention_norm_;
  Attention attention_;
  LayerNorm feed_forward_norm_;
  FeedForwardOrMemory feed_forward_;
};

}  // namespace linserve
