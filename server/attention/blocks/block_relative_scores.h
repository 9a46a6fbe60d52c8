#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "attention/products/bf16_product.h"
#include "attention/products/block_product.h"
#include "attention/products/kernel_rows.h"

namespace linserve {

// Says which relative position a query and a key have, by the distance from query to key.
struct RelativePlaces {
  // Points at the place of distance 0. Places do not decrease as distances grow.
  const int32_t* of = nullptr;
  // Those of distances up to so many, on either side, are neighbours.
  int64_t straight = 0;
};

// Adds to blocks of scores what positions, of which there are few, make of queries and keys
// (disentangled attention; He et al. 2020, arXiv:2006.03654):
//   score_ij += q_i · a_p + k_j · b_p, where p is the place of the distance j - i.
// A block is multiplied with the positions that it meets, and each pair finds its sum there.
class BlockRelativeScores {
 public:
  // Is a block of scores of a head: of queries from the sequence's row `row` on, and of keys from
  // `first` on, at most kBlockRows of each.
  struct Block {
    int64_t head;
    int64_t row;
    int64_t queries;
    int64_t first;
    int64_t keys;
  };

  BlockRelativeScores() = default;
  // Takes a and b [positions, heads · dim_head], in F32 on the CPU; one that is undefined adds
  // nothing. Products are of BF16 where they are `rounded`, as those of the scores must be.
  BlockRelativeScores(const at::Tensor& a, const at::Tensor& b, int64_t dim_head, bool rounded);

  bool defined() const { return a_.defined() || b_.defined(); }
  static int64_t ScratchElements();

  // Adds to scores [queries, keys]. `queries` and the transposed keys [dim_head, keys] are those of
  // the head, as the products of scores take them: readable up to whole rows and columns.
  void Add(const Block& block, const RowBlock& queries, const RowBlock& keys,
           const RelativePlaces& places, const RowBlock& scores, float* scratch) const;
  void Add(const Block& block, const Bf16Block& queries, const Bf16Block& keys,
           const RelativePlaces& places, const RowBlock& scores, float* scratch) const;

 private:
  template <typename Operand>
  void AddParts(const Block& block, const Operand& queries, const Operand& keys,
                const RelativePlaces& places, const RowBlock& scores, float* scratch) const;
  // Give the positions from `position` on, of a head.
  void Positions(int64_t head, int64_t position, RowBlock* a, RowBlock* b) const;
  void Positions(int64_t head, int64_t position, Bf16Block* a, Bf16Block* b) const;

  int64_t dim_head_ = 0;
  at::Tensor a_;  // transposed [inner, positions and more]; in BF16 by pairs of its rows
  at::Tensor b_;  // [positions and more, inner]
};

}  // namespace linserve
