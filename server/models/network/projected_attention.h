#pragma once

#include <cstdint>
#include <memory>

#include "attention/blocks/block_slots.h"
#include "attention/rows/placed_layout.h"
#include "models/network/joined_linear.h"
#include "models/network/layers.h"
#include "models/network/length_matrix.h"

namespace linserve {

// Is Linformer attention whose E and F serve all heads: queries attend to slots, which E and F make
// of a sequence's keys and values. Source: Wang et al. 2020 (arXiv:2006.04768), equation 7.
class ProjectedAttention {
 public:
  struct Sizes {
    int64_t dim;
    int64_t heads;
    int64_t dim_head;
    int64_t kv_heads;       // heads or 1, which serves all
    bool share_kv = false;  // the values are the keys
    // Queries, keys and values have biases. Those of keys and values are added to slots.
    bool biased = false;
    bool causal = false;  // slot s is hidden from queries before row s

    int64_t inner() const { return heads * dim_head; }
    int64_t kv_width() const { return kv_heads * dim_head; }
  };
  // Says what the checkpoint calls its tensors.
  struct Names {
    const char* query;
    const char* key;
    const char* value;
    const char* out;
    const char* e;
    const char* f;  // nullptr: it has no name of its own
  };

  // Holds what queries come of and, as the source, keys and values.
  struct Input {
    NormedRows x;  // [rows, dim]
    const PlacedLayout& layout;
    NormedRows source;  // all rows of which are visible if keys and values have biases
    const PlacedLayout& source_layout;
    at::Tensor rotation{};  // table of rotary positions for both; undefined: they are not turned
  };

  // E and F may be the same matrix.
  ProjectedAttention(const Sizes& sizes, const Names& names, std::shared_ptr<LengthMatrix> e,
                     std::shared_ptr<LengthMatrix> f);

  void Declare(const Scope& scope);

  // Adds to target [rows, dim] the attention of x to its source. The target may be x's rows, and
  // the source's, too, if those are x's.
  void AddTo(const at::Tensor& target, const Input& input) const;

  // Does what AddTo() does, but for bias(). REQUIRES: not packed().
  void AddWithoutBias(const at::Tensor& target, const Input& input) const;
  const at::Tensor& bias() const { return out_.bias; }

  // Does what AddTo() does, with `then`, which follows on each block of the target's rows.
  // REQUIRES: packed().
  void AddByBlocks(const at::Tensor& target, const Input& input, const BlockStep& then) const;
  bool packed() const { return query_.packed && key_.packed; }

  // Counts additions and multiplications for one sequence of `queries` rows and `keys` source rows.
  double Flops(int64_t queries, int64_t keys) const;

 private:
  // Returns what the queries of x make of the slots: [rows, inner]. REQUIRES: not packed().
  at::Tensor Attended(const Input& input) const;
  // Moves the biases of keys and values to where they can be added once.
  void FoldBiases();
  // Makes slots of the rows of one sequence of the source.
  void Project(const Input& input, size_t sequence, BlockSlots& slots) const;
  // Makes queries or keys of rows, the first one of which is row `place` of its sequence.
  void SetTurned(const Linear& linear, const Input& input, int64_t heads, int64_t place,
                 const RowBlock& rows, int64_t count, const RowBlock& out) const;

  Sizes sizes_;
  Names names_;
  Linear query_, key_, value_, out_;
  JoinedLinear joined_;  // queries, keys and, unless they are the keys, values
  std::shared_ptr<LengthMatrix> e_, f_;
};

}  // namespace linserve
