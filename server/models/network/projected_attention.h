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

  // E and F may be the same matrix.
  ProjectedAttention(const Sizes& sizes, const Names& names, std::shared_ptr<LengthMatrix> e,
                     std::shared_ptr<LengthMatrix> f);

  void Declare(const Scope& scope);

  // Adds to target [rows, dim] the attention of x [rows, dim] to the source of keys and values,
  // each laid out by its own layout. Target and x may be the same; and the source, too, if it is x.
  void AddTo(const at::Tensor& target, const NormedRows& x, const PlacedLayout& layout,
             const NormedRows& source, const PlacedLayout& source_layout) const;

  // Does what AddTo() does for x as its own source, but for bias(). REQUIRES: not packed().
  void AddWithoutBias(const at::Tensor& target, const NormedRows& x,
                      const PlacedLayout& layout) const;
  const at::Tensor& bias() const { return out_.bias; }

  // Does what AddTo() does, with `then`, which follows on each block of the target's rows.
  // REQUIRES: packed().
  void AddByBlocks(const at::Tensor& target, const NormedRows& x, const PlacedLayout& layout,
                   const NormedRows& source, const PlacedLayout& source_layout,
                   const BlockStep& then) const;
  bool packed() const { return query_.packed && key_.packed; }

  // Counts additions and multiplications for one sequence of `queries` rows and `keys` source rows.
  double Flops(int64_t queries, int64_t keys) const;

 private:
  // Returns what the queries of x make of the slots: [rows, inner]. REQUIRES: not packed().
  at::Tensor Attended(const NormedRows& x, const PlacedLayout& layout, const NormedRows& source,
                      const PlacedLayout& source_layout) const;
  // Moves the biases of keys and values to where they can be added once.
  void FoldBiases();
  // Makes slots of the rows of one sequence of the source.
  void Project(const NormedRows& source, int64_t start, int64_t length, BlockSlots& slots) const;

  Sizes sizes_;
  Names names_;
  Linear query_, key_, value_, out_;
  JoinedLinear joined_;  // queries, keys and, unless they are the keys, values
  std::shared_ptr<LengthMatrix> e_, f_;
};

}  // namespace linserve
