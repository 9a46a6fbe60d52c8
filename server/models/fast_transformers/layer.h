#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/fast_transformers/attention.h"
#include "models/fast_transformers/options.h"
#include "models/network/layers.h"
#include "models/sessions/session_memory.h"
#include "models/sessions/session_plan.h"

namespace linserve::fast_transformers {

// Says what a checkpoint calls the tensors of a layer.
struct LayerNames {
  AttentionNames self, cross;
  std::string self_norm, cross_norm, inner, outer, norm;
};

// Holds what all layers need to know of a batch.
struct Context {
  PlacedLayout layout;
  at::Tensor mask{};               // BOOL [rows], true = the key is visible; undefined: all
  std::optional<Source> memory{};  // of decoders
  at::Tensor rotation{};           // F32 [longest, width], sines and cosines; undefined: none
  std::shared_ptr<SessionMemory> session{};  // null: these are whole sequences
};

// Is a layer with norms behind its sums, of an encoder or a decoder.
class Layer {
 public:
  explicit Layer(const LayerOptions& options);

  void Declare(const Scope& layer, const LayerNames& names);
  double Flops(int64_t length, int64_t memory) const;

  // Applies it to rows [rows, dim] in place.
  void Apply(at::Tensor& rows, const Context& context) const;

  // Says what it keeps of a sequence that comes chunk by chunk.
  std::vector<StateSlot> State() const;

 private:
  void ApplyToTensors(at::Tensor& rows, const Context& context) const;
  void ApplyByBlocks(at::Tensor& rows, const Context& context) const;
  void AddByBlocks(const Attention& attention, at::Tensor& rows, const Context& context,
                   const Source& source, const BlockStep& then) const;
  void ApplyToNext(at::Tensor& rows, const Context& context) const;
  void FeedForwardTo(at::Tensor& rows) const;

  Attention self_;
  LayerNorm self_norm_;
  std::optional<Attention> cross_;
  LayerNorm cross_norm_;
  FeedForward feed_forward_;
  LayerNorm norm_;
};

}  // namespace linserve::fast_transformers
