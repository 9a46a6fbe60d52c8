#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "attention/blocks/block_local_attention.h"
#include "attention/favor/stabilized_features.h"
#include "attention/linear/causal_linear_attention.h"
#include "attention/linear/feature_attention.h"
#include "attention/linear/random_features.h"
#include "attention/rows/spans.h"
#include "models/network/attention_by_blocks.h"
#include "models/network/layers.h"
#include "models/network/sequences.h"
#include "models/performer_pytorch/options.h"
#include "models/sessions/session_memory.h"
#include "models/sessions/session_plan.h"

namespace linserve::performer_pytorch {

// Is performer_pytorch.Attention: the first heads attend by features, the last ones locally. Keys
// and values come of the rows themselves or of a context. Rows whose mask is false have no values
// for global heads, but as keys they count in what divides the others, as in the package; local
// heads do not see them.
class Attention {
 public:
  // Without local heads and not causal where it is `crossing`: of rows to a context.
  Attention(const Options& options, int64_t local_heads, bool crossing);

  void Declare(const Scope& scope);
  Linear& outputs() { return to_out_; }

  // Takes x [rows, dim], source [source rows, dim] and `rotary`, the table of rotary positions of
  // global heads for both, or undefined.
  at::Tensor Forward(const at::Tensor& x, const PlacedLayout& layout, const at::Tensor& source,
                     const MaskedLayout& source_layout, const at::Tensor& rotary) const;

  // Adds to the target what Forward() gives for the rows' norms, with `then`, which follows on each
  // block of the target's rows. Target and x may be the same; and the source, too, if it is x.
  // REQUIRES: WorksByBlocks().
  void AddByBlocks(const at::Tensor& target, const NormedRows& x, const PlacedLayout& layout,
                   const NormedRows& source, const MaskedLayout& source_layout,
                   const at::Tensor& rotary, const BlockStep& then) const;
  bool WorksByBlocks() const;

  // Says what is kept of a sequence that comes chunk by chunk: of causal attention, or, crossing,
  // of the context.
  std::vector<StateSlot> State() const;
  // Adds to the target what Forward() gives for the next rows x of sequences whose earlier ones are
  // in `memory`. `rotary` has one row of the table for each of them, or is undefined.
  void AddNext(const at::Tensor& target, const at::Tensor& x, const PlacedLayout& layout,
               const at::Tensor& rotary, SessionMemory& memory) const;
  // Adds what rows make of the context, which comes with the first of them: then `source` is
  // defined.
  void AddNextToContext(const at::Tensor& target, const at::Tensor& x, const PlacedLayout& layout,
                        const at::Tensor& source, const MaskedLayout& source_layout,
                        SessionMemory& memory) const;

  // Counts additions and multiplications for one sequence of `queries` rows and `keys` source rows.
  double Flops(int64_t queries, int64_t keys) const;

 private:
  // Holds heads of sequences of equal length: [count, heads, rows, dim_head].
  struct Heads {
    at::Tensor queries, keys, values, out;
  };

  // Does what AddByBlocks() does where there are local heads, with queries, keys and values of a
  // whole sequence at once.
  void AddWithLocalHeads(const AttentionByBlocks& rows) const;
  // Makes them [filled rows, 3 · heads · dim_head], turned by their positions.
  void Project(const AttentionByBlocks& rows, const AttentionByBlocks::Sequence& sequence,
               const at::Tensor& out) const;
  // Calls `all` with what global heads attend by block by block, or, if that is causal, `causal`.
  template <typename All, typename Causal>
  void WithGlobalAttention(const All& all, const Causal& causal) const;

  // `there` BOOL [count, 1, length] says which keys are no padding; undefined: all.
  void AttendGlobally(const Heads& heads, const at::Tensor& there) const;
  void AttendLocally(const Heads& heads, const at::Tensor& mask) const;
  // Attends for the next rows of sequences, of which `positions` rows have been read.
  void AttendToNext(const Heads& heads, const std::vector<int64_t>& positions,
                    const std::vector<at::Tensor>& state) const;
  // Turns the heads of rows that lie at these positions [rows] as local-attention does.
  at::Tensor TurnedHalves(const at::Tensor& rows, const at::Tensor& positions) const;
  // Returns the part of columns [..., heads · dim_head] that is the global heads'.
  at::Tensor Global(const at::Tensor& columns) const;
  // Returns what keys of these heads are shifted by; undefined: nothing.
  at::Tensor ShiftOf(const at::Tensor& keys) const;
  FeatureForm FormWith(const at::Tensor& shift) const;
  // Sets `sums`, as State() has them, to those over a context.
  void ReadContext(const at::Tensor& source, const MaskedLayout& layout,
                   const std::vector<at::Tensor>& sums) const;

  bool is_softmaxed() const { return options_.kernel == Options::Kernel::kSoftmaxed; }
  int64_t global_heads() const { return options_.heads - local_heads_; }

  // Is added to the sum of each feature over the keys in causal attention.
  static constexpr double kAdded = 1e-6;
  static constexpr CausalDivisor kDivisor = {.floor = 0, .added = kAdded};

  Options options_;
  int64_t local_heads_;
  bool causal_;
  Linear to_q_, to_k_, to_v_, to_out_;
  RandomFeatures features_;
  StabilizedFeatures block_features_;
  at::Tensor inverse_frequencies_;            // of local heads
  std::optional<BlockLocalAttention> local_;  // of packed layers with local heads
};

}  // namespace linserve::performer_pytorch
