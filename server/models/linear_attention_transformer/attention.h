#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "attention/blocks/block_linear_attention.h"
#include "attention/blocks/block_local_attention.h"
#include "attention/rows/spans.h"
#include "models/network/attention_by_blocks.h"
#include "models/network/joined_linear.h"
#include "models/network/layers.h"
#include "models/network/sequences.h"
#include "models/sessions/session_memory.h"
#include "models/sessions/session_plan.h"

namespace linserve::linear_attention_transformer {

struct AttentionOptions {
  int64_t dim = 0;
  int64_t heads = 0;
  int64_t dim_head = 0;
  int64_t local_heads = 0;       // the first ones; the others attend globally
  int64_t window = 0;            // of local heads
  bool outside_is_seen = false;  // by local heads of whole windows without a mask
  bool causal = false;
  int64_t bucket = 1;       // of causal global heads
  int64_t axial_width = 0;  // not 0: attention within the columns of a grid so wide
};

// Is linear_attention_transformer.SelfAttention: q, k, v without bias, some heads local and the
// others with linear attention. Keys and values come of the rows themselves or of a context.
class Attention {
 public:
  explicit Attention(const AttentionOptions& options);

  void Declare(const Scope& scope);

  // Takes x [rows, dim], source [source rows, dim] and `rotary`, the table of rotary positions for
  // both, or undefined.
  at::Tensor Forward(const at::Tensor& x, const PlacedLayout& layout, const at::Tensor& source,
                     const MaskedLayout& source_layout, const at::Tensor& rotary) const;

  // Adds to the target what Forward() gives for the rows' norms, with `then`, which follows on each
  // block of the target's rows. Target and x may be the same; and the source, too, if it is x.
  // REQUIRES: WorksByBlocks().
  void AddByBlocks(const at::Tensor& target, const NormedRows& x, const PlacedLayout& layout,
                   const NormedRows& source, const MaskedLayout& source_layout,
                   const at::Tensor& rotary, const BlockStep& then) const;
  bool WorksByBlocks() const;

  // Says what is kept of a sequence that comes chunk by chunk. REQUIRES: causal, not axial.
  std::vector<StateSlot> State() const;
  // Adds to the target what Forward() gives for the next rows x of sequences whose earlier ones are
  // in `memory`. `rotary` has one row of the table for each of them, or is undefined.
  void AddNext(const at::Tensor& target, const at::Tensor& x, const PlacedLayout& layout,
               const at::Tensor& rotary, SessionMemory& memory) const;

  // These are the state and the next rows where rows attend to a context, which comes with the
  // first of them: then `source` is defined.
  std::vector<StateSlot> ContextState() const;
  void AddNextToContext(const at::Tensor& target, const at::Tensor& x, const PlacedLayout& layout,
                        const at::Tensor& source, const MaskedLayout& source_layout,
                        SessionMemory& memory) const;

  // Counts additions and multiplications for one sequence of `queries` rows and `keys` source rows.
  double Flops(int64_t queries, int64_t keys) const;

 private:
  // Holds all rows [rows, heads · dim_head] and mask [rows], or a span of sequences of equal
  // length: [count, rows, heads · dim_head], mask [count, rows].
  struct Operands {
    at::Tensor queries, keys, values, mask, out;
  };

  // Does what AddByBlocks() does where there are local heads or columns, with queries, keys and
  // values of a whole sequence at once.
  void AddOfWholeSequences(const AttentionByBlocks& rows) const;
  void AttendGlobally(const RowBlock& queries, int64_t count) const;

  void Attend(const Operands& rows, bool global_is_done) const;
  void AttendGlobally(const Operands& heads) const;
  // Attends for all sequences at once, where the device has a kernel for it. False: nothing is
  // done.
  bool AttendGloballyOnDevice(const Operands& rows, const PlacedLayout& layout,
                              const PlacedLayout& source_layout) const;
  void AttendAxially(const Operands& rows) const;
  void AttendNext(const Operands& rows, const std::vector<int64_t>& positions,
                  const std::vector<at::Tensor>& state, bool local_is_done) const;
  // Attends locally for one row of each sequence.
  void StepLocally(const Operands& rows, SessionMemory& memory) const;

  AttentionOptions options_;
  Linear to_q_, to_k_, to_v_, to_out_;
  JoinedLinear qkv_;
  std::optional<BlockLocalAttention> local_;  // of packed layers with local heads
};

}  // namespace linserve::linear_attention_transformer
