#pragma once

#include <cstdint>

#include "attention/blocks/block_slots.h"
#include "attention/rows/placed_layout.h"
#include "models/network/layers.h"
#include "models/network/params.h"

namespace linserve::linformer {

struct AttentionOptions {
  int64_t dim = 0;
  int64_t seq_len = 0;
  int64_t k = 256;
  int64_t heads = 8;
  int64_t dim_head = 0;
  bool one_kv_head = false;
  bool share_kv = false;

  // Reads and checks the constructor arguments that all three classes share.
  static AttentionOptions From(Params& params);
};

// Is linformer.LinformerSelfAttention: q, k, v without bias; keys and values projected along the
// length by proj_k and proj_v [seq_len, k].
class SelfAttention {
 public:
  explicit SelfAttention(const AttentionOptions& options);

  void Declare(const Scope& scope);

  // Adds to target [rows, dim] the attention of x [rows, dim] to the source of keys and values,
  // each laid out by its own layout. Target and x may be the same; and the source, too, if it is x.
  void AddTo(const at::Tensor& target, const NormedRows& x, const PlacedLayout& layout,
             const NormedRows& source, const PlacedLayout& source_layout) const;

  // Does what AddTo() does, with `then`, which follows on each block of the target's rows.
  // REQUIRES: packed().
  void AddByBlocks(const at::Tensor& target, const NormedRows& x, const PlacedLayout& layout,
                   const NormedRows& source, const PlacedLayout& source_layout,
                   const BlockStep& then) const;
  bool packed() const { return to_q_.packed && to_k_.packed; }

  // Counts additions and multiplications for one sequence of `queries` rows and `keys` source rows.
  double Flops(int64_t queries, int64_t keys) const;

 private:
  void Prepare(DType products);
  // Makes slots of the rows of one sequence of the source.
  void Project(const NormedRows& source, int64_t start, int64_t length, BlockSlots& slots) const;

  AttentionOptions options_;
  Linear to_q_, to_k_, to_v_, to_out_;
  at::Tensor proj_k_, proj_v_;  // [seq_len, k]; undefined once they are packed
  LengthWeights packed_k_, packed_v_;
};

}  // namespace linserve::linformer
