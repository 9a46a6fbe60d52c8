#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

#include "attention/blocks/block_relative_scores.h"
#include "attention/products/block_math.h"
#include "attention/products/kernel_rows.h"
#include "core/tensor/dtype.h"

namespace linserve {

// Computes softmax attention of blocks of queries to the keys of their sequence, which come in
// blocks, too:
//   out_i = Σ_j softmax_j((q_i · k_j + bias_(j - i)) · scale) v_j, over the visible j.
// The maximum and the sum run over the blocks, so no more than a block of scores exists at once.
// Source: Vaswani et al. 2017 (arXiv:1706.03762), equation 1, in the order of Dao et al. 2022
// (arXiv:2205.14135). It takes F32 on the CPU; products are computed in F32 or, where that is asked
// for and pays on this CPU, in BF16.
class BlockAttention {
 public:
  struct Sizes {
    int64_t heads;
    int64_t dim_head;
    DType products = DType::kF32;  // I8 is BF16: scores and weights are not rounded row by row
    int64_t before = -1;           // a query's window has so many rows before it; -1: all
    int64_t after = -1;            // and so many after it
    // The rows of a sequence are in runs of so many, each of which has one window around it.
    int64_t run = 1;
    bool causal = false;      // in its window a query sees no later key
    int64_t value_width = 0;  // of a head; 0: dim_head
    double scale = 0;         // 0: 1 / sqrt(dim_head)
    double cap = 0;  // what is scaled, s, becomes cap · tanh(s / cap); nothing else is added; 0: no
    // Keys and values have so many heads, each of which as many neighbouring heads of queries read
    // (Ainslie et al. 2023, arXiv:2305.13245); 0: as many as queries. REQUIRES: it divides them.
    int64_t key_heads = 0;
    bool relative = false;  // scores depend on relative positions, too
    bool blank = false;     // a query that sees nothing gets zeros, and no average

    int64_t inner() const { return heads * dim_head; }
    int64_t key_inner() const { return key_heads * dim_head; }
    int64_t value_inner() const { return key_heads * value_width; }
  };

  // Holds a sequence's keys and values as LayOut() made them, `block_rows` rows in each block.
  struct Keys {
    float* memory;
    int64_t rows;
    int64_t block_rows;
  };

  // Says what is added to products of queries and keys, and which keys there are besides.
  struct Scores {
    const float* of_keys = nullptr;  // [rows of the sequence]; kHidden hides the key
    // Points at what the first head adds where key and query are the same row: behind it stands
    // what is for later keys, before it what is for earlier ones.
    const float* of_distances = nullptr;
    int64_t distances = 0;  // from one head's to the next one's
    // Is rounded() as the attention is. REQUIRES: Sizes::relative.
    const BlockRelativeScores* relative = nullptr;
    RelativePlaces places{};
    const float* of_queries = nullptr;  // [rows of the sequence]; kHidden hides all keys from it
    // Are seen by all queries, whatever their windows; of_others is added to their scores alone.
    Keys others{nullptr, 0, 1};
    const float* of_others = nullptr;  // [rows of `others`]
  };
  // A query all of whose keys are hidden averages them: those of its window, as if there were zeros
  // where it reaches beyond the sequence, unless Sizes::blank says otherwise.
  static constexpr float kHidden = -1e30F;
  // Returns `of_keys` for a mask BOOL [rows], true = the key is visible: F32, on its device;
  // undefined without a mask.
  static at::Tensor ScoresOfKeys(const at::Tensor& mask);

  explicit BlockAttention(const Sizes& sizes);

  // Says whether products are computed in BF16.
  bool rounded() const { return rounded_; }

  // Returns the elements of memory that a block of so many keys takes, at most kBlockRows.
  int64_t KeyElements(int64_t rows) const;
  // Lays out a block of keys [count, key_inner] and values [count, value_inner] in that memory.
  // `scratch` has ScratchElements().
  void LayOut(const RowBlock& keys, const RowBlock& values, int64_t count, float* memory,
              float* scratch) const;

  // So many rows of memory are enough for a block of queries that begins anywhere in it.
  static constexpr int64_t kReadableRows = kBlockRows + kFewestKernelRows;
  // Computes the attention of a block of queries [count, inner], the first one of which is the
  // sequence's row `row`: out [count, heads · value_width]. It may be the queries, where it is as
  // wide.
  // Memory is readable up to WholeKernelRows(count) queries.
  void Attend(const RowBlock& queries, int64_t row, int64_t count, const Keys& keys,
              const Scores& scores, const RowBlock& out, float* scratch) const;
  int64_t ScratchElements() const;

 private:
  struct Tile;

  void AttendHead(int64_t head, const Tile& tile, const Keys& keys, const Scores& scores) const;
  // Makes products of queries and a block of keys.
  void Multiply(int64_t head, const Tile& tile, float* memory, int64_t count) const;
  // Makes scores of a block of keys, the first one of which is the sequence's row `first`.
  void Score(int64_t head, const Tile& tile, float* memory, int64_t first, int64_t count,
             const Scores& scores) const;
  void AddRelative(int64_t head, const Tile& tile, float* memory, int64_t first, int64_t count,
                   const Scores& scores) const;
  // Makes weights of the scores of so many keys.
  void Weigh(const Tile& tile, int64_t count) const;
  void AddValues(int64_t head, const Tile& tile, float* memory, int64_t count, bool add) const;
  void HideFarKeys(const Tile& tile, int64_t first, int64_t count) const;
  // Corrects the sums of queries that see nothing.
  void CorrectBlind(const Tile& tile, const Keys& keys) const;
  // Returns where the window of a query's row begins and ends, beyond the sequence or not.
  int64_t WindowBegin(int64_t row) const { return row - row % sizes_.run - sizes_.before; }
  int64_t WindowEnd(int64_t row) const {
    return row - row % sizes_.run + sizes_.run + sizes_.after;
  }
  bool has_window() const { return sizes_.before >= 0 || sizes_.after >= 0; }
  // Returns the head of keys and values that a head of queries reads.
  int64_t KeyHead(int64_t head) const { return head / (sizes_.heads / sizes_.key_heads); }
  float* ValuesIn(float* memory) const;

  Sizes sizes_;
  bool rounded_;
};

// Holds keys and values of a sequence as BlockAttention reads them.
class LaidOutKeys {
 public:
  // Lays out `count` rows, the first one of which is row `place` of the sequence.
  using LayOut = std::function<void(int64_t place, int64_t count, float* memory, float* scratch)>;

  // Has a sequence of so many rows laid out block by block by all threads, each of which has so
  // many elements of scratch. Now and then others get a turn.
  LaidOutKeys(const BlockAttention& attention, int64_t rows, int64_t scratch_elements,
              const LayOut& lay_out);

  BlockAttention::Keys keys() const {
    return {memory_.mutable_data_ptr<float>(), rows_, block_rows_};
  }

 private:
  int64_t rows_;
  int64_t block_rows_;
  at::Tensor memory_;
};

}  // namespace linserve
