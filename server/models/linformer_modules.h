#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include "attention/block_slots.h"
#include "models/layers.h"
#include "models/network.h"
#include "models/params.h"

namespace linserve {

struct LinformerAttentionOptions {
  int64_t dim = 0;
  int64_t seq_len = 0;
  int64_t k = 256;
  int64_t heads = 8;
  int64_t dim_head = 0;
  bool one_kv_head = false;
  bool share_kv = false;

  // Reads and checks the constructor arguments that all three classes share.
  static LinformerAttentionOptions From(Params& params);
};

// linformer.LinformerSelfAttention: q, k, v without bias; keys and values projected along the
// length by proj_k and proj_v [seq_len, k].
class LinformerSelfAttention {
 public:
  explicit LinformerSelfAttention(const LinformerAttentionOptions& options);

  void Declare(const Scope& scope);

  // target [rows, dim] += attention of x [rows, dim] to the source of keys and values, laid out
  // each by its own layout. Target and x may be the same; and the source, too, if it is x.
  void AddTo(const at::Tensor& target, const NormedRows& x, const AxisLayout& layout,
             const NormedRows& source, const AxisLayout& source_layout) const;

  // The same with `then`, which follows on each block of the target's rows. REQUIRES: packed().
  void AddByBlocks(const at::Tensor& target, const NormedRows& x, const AxisLayout& layout,
                   const NormedRows& source, const AxisLayout& source_layout,
                   const BlockStep& then) const;
  bool packed() const { return to_q_.packed && to_k_.packed; }

  // Of one sequence of `queries` rows and `keys` source rows.
  double Flops(int64_t queries, int64_t keys) const;

 private:
  void Prepare();
  // Makes slots of the rows of one sequence of the source.
  void Project(const NormedRows& source, int64_t start, int64_t length, BlockSlots& slots) const;

  LinformerAttentionOptions options_;
  Linear to_q_, to_k_, to_v_, to_out_;
  at::Tensor proj_k_, proj_v_;  // [seq_len, k]; undefined once they are packed
  LengthWeights packed_k_, packed_v_;
};

// The stack of linformer.Linformer: pre-norm layers without a final norm, plain or reversible.
class LinformerStack {
 public:
  LinformerStack(const LinformerAttentionOptions& options, int64_t depth, bool reversible);

  void Declare(const Scope& scope);
  double Flops(int64_t length) const;

  // The stack applied to rows [rows, dim], a layer a step.
  class Run {
   public:
    // Takes over `rows`. `stack` must outlive the run.
    Run(const LinformerStack& stack, at::Tensor rows, AxisLayout layout);

    bool Step();        // false once every layer is done
    at::Tensor Take();  // REQUIRES: Step() returned false

   private:
    const LinformerStack& stack_;
    AxisLayout layout_;
    at::Tensor stream_;         // x; reversible: v
    at::Tensor second_stream_;  // reversible: u
    size_t layer_ = 0;
  };

 private:
  struct Layer {
    LayerNorm attention_norm;
    LinformerSelfAttention attention;
    LayerNorm feed_forward_norm;
    FeedForward feed_forward;
  };

  bool reversible_;
  std::deque<Layer> layers_;
};

}  // namespace linserve
