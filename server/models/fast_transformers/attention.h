#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "attention/blocks/block_attention.h"
#include "attention/blocks/block_feature_attention.h"
#include "attention/blocks/sequence_groups.h"
#include "attention/products/block_product.h"
#include "models/fast_transformers/feature_map.h"
#include "models/fast_transformers/options.h"
#include "models/network/layers.h"
#include "models/sessions/session_memory.h"
#include "models/sessions/session_plan.h"

namespace linserve::fast_transformers {

// Says what a checkpoint calls the tensors of an attention.
struct AttentionNames {
  std::string query, key, value, out, directions;
};

// Holds the rows that keys and values come of.
struct Source {
  at::Tensor rows;  // [source rows, source_dim]
  PlacedLayout layout;
  at::Tensor mask{};        // BOOL [source rows], true = the key is visible; undefined: all
  at::Tensor key_scores{};  // F32 [source rows], 0 or BlockAttention::kHidden; as the mask

  static Source Of(at::Tensor rows, PlacedLayout layout, const at::Tensor& mask);
};

// Is multi-head attention, linear with any of the feature maps or by softmax, to the queries' own
// rows or to others.
class Attention {
 public:
  explicit Attention(const AttentionOptions& options);

  void Declare(const Scope& scope, const AttentionNames& names);

  // Counts additions and multiplications for `queries` rows and `keys` source rows.
  double Flops(int64_t queries, int64_t keys) const;

  // Returns what x [rows, dim] attends to, on any device. `rotation` is the table of rotary
  // positions for both, or undefined.
  at::Tensor operator()(const at::Tensor& x, const PlacedLayout& layout, const Source& source,
                        const at::Tensor& rotation) const;

  // Adds to the target what its rows attend to, with `then`, which follows on each block of them.
  // The source's rows may be the target. REQUIRES: WorksByBlocks().
  void AddByBlocks(const at::Tensor& target, const PlacedLayout& layout, const Source& source,
                   const at::Tensor& rotation, const BlockStep& then) const;
  bool WorksByBlocks() const;

  // Says what is kept of a sequence that comes chunk by chunk. REQUIRES: linear.
  std::vector<StateSlot> State() const;
  // Returns what the next rows x of sequences attend to, whose earlier rows are in the memory.
  // REQUIRES: causal.
  at::Tensor Continue(const at::Tensor& x, const PlacedLayout& layout, SessionMemory& memory) const;
  // Returns what rows x attend to in a source that comes with the first of them: then it is not
  // nullptr. REQUIRES: not causal.
  at::Tensor ContinueToSource(const at::Tensor& x, const PlacedLayout& layout, const Source* source,
                              SessionMemory& memory) const;

 private:
  // Describes what AddByBlocks() is to do.
  struct Work;

  FeatureForm FormOf(const at::Tensor& queries, const at::Tensor& keys) const;
  at::Tensor AttendLinearly(const at::Tensor& queries, at::Tensor keys, at::Tensor values,
                            at::Tensor mask) const;
  at::Tensor Scored(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                    const std::optional<at::Tensor>& open) const;
  at::Tensor AttendToVisible(const at::Tensor& queries, int64_t row, const at::Tensor& keys,
                             const at::Tensor& values, const at::Tensor& mask) const;
  at::Tensor AttendBySoftmax(const at::Tensor& queries, const at::Tensor& keys,
                             const at::Tensor& values, const at::Tensor& mask) const;

  // These compute blocks. Those of a group have one sequence after another, each whole.
  void AttendGroup(const Work& work, const SequenceGroup& group, float* scratch) const;
  void AttendGroupLinearly(const Work& work, const SequenceGroup& group, const RowBlock& values,
                           float* scratch) const;
  void AttendGroupBySoftmax(const Work& work, const SequenceGroup& group, const RowBlock& values,
                            float* scratch) const;
  void AttendLinearly(const Work& work, size_t sequence, RowSlices& slices) const;
  void AttendCausally(const Work& work, size_t sequence, RowSlices& slices) const;
  void AttendBySoftmax(const Work& work, size_t sequence) const;
  LaidOutKeys LayOutKeys(const Work& work, size_t sequence) const;
  // Takes a block of attended values to the end of the work.
  void Finish(const Work& work, int64_t row, int64_t count, const RowBlock& attended,
              float* scratch) const;

  // Projects rows, the first one of which is row `place` of its sequence.
  void SetTurned(const Linear& projection, const RowBlock& rows, int64_t place, int64_t count,
                 const at::Tensor& rotation, const RowBlock& out) const;
  // Makes features of them; `scratch` has kBlockRows · inner() elements.
  void SetFeatures(const Linear& projection, const RowBlock& rows, int64_t place, int64_t count,
                   const at::Tensor& rotation, const RowBlock& out, float* scratch) const;
  // Makes features of a source's keys, and their values, from row `place` of the sequence on.
  void SetKeys(const Work& work, size_t sequence, int64_t place, int64_t count,
               const RowBlock& keys, const RowBlock& values, float* scratch) const;
  void HideKeys(const Source& source, int64_t row, int64_t count, const RowBlock& keys) const;

  int64_t GroupScratch() const;
  int64_t inner() const { return options_.heads * options_.width; }
  int64_t value_inner() const { return options_.heads * options_.value_width; }
  int64_t feature_inner() const { return options_.heads * features_.features(); }

  AttentionOptions options_;
  Linear query_, key_, value_, out_;
  FeatureMap features_;
  BlockFeatureAttention linear_;
  BlockAttention softmax_;
};

}  // namespace linserve::fast_transformers
