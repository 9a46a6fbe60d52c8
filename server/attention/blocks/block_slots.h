#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "attention/products/bf16_product.h"
#include "attention/products/block_product.h"
#include "core/tensor/dtype.h"

namespace linserve {

// Holds the matrix E or F by which the rows of a sequence become slots, along its length. It is
// read in contiguous blocks, since whole rows of it may be pages apart: laid out like that once,
// or, where it is large and its blocks would not stay in a cache anyway, copied block by block each
// time.
class LengthWeights {
 public:
  LengthWeights() = default;
  // Takes matrices [heads, slots, length], one for each head or one for all of them, and bias
  // [heads, slots] or undefined, in F32 on the CPU. Products are computed in `products`, where I8
  // is as good as BF16: sums over a sequence's rows have no scale for each of them. Matrices of
  // more elements than `most_packed` are kept as they are.
  LengthWeights(const at::Tensor& matrices, at::Tensor bias, DType products,
                int64_t most_packed = int64_t{4} << 20);

  // Returns the same matrices, which share their memory, with another bias.
  LengthWeights WithBias(const at::Tensor& bias) const;

  bool defined() const { return matrices_ > 0; }
  bool is_same(const LengthWeights& other) const {
    return blocks_.is_same(other.blocks_) && as_loaded_.is_same(other.as_loaded_);
  }
  int64_t matrices() const { return matrices_; }
  const at::Tensor& bias() const { return bias_; }
  // Says whether products are computed in BF16, else in F32.
  bool rounded() const { return rounded_; }

  // Returns a block of the matrix, [slots, kBlockRows] or less: what `count` slots from `slot` on
  // take of the rows from `row` on, a multiple of kBlockRows. `scratch` has ScratchElements().
  RowBlock Block(int64_t matrix, int64_t row, int64_t slot, int64_t count, float* scratch) const;
  // Returns the same in BF16, with zeros up to kBlockRows. REQUIRES: rounded().
  Bf16Block RoundedBlock(int64_t matrix, int64_t row, int64_t slot, int64_t count,
                         float* scratch) const;
  int64_t ScratchElements() const;

 private:
  RowBlock Packed(int64_t matrix, int64_t row) const;
  Bf16Block PackedRounded(int64_t matrix, int64_t row) const;
  // Copies a block of the matrix as it was loaded.
  RowBlock Copy(int64_t matrix, int64_t row, int64_t slot, int64_t count, float* scratch) const;

  bool rounded_ = false;
  int64_t matrices_ = 0;
  int64_t slots_ = 0;
  int64_t length_ = 0;
  at::Tensor blocks_;
  at::Tensor as_loaded_;  // [matrices, slots, length], in place of blocks
  at::Tensor bias_;
};

// Computes the Linformer attention of one sequence whose rows come in blocks, so that neither its
// keys nor its queries need ever exist as a whole. It takes F32 on the CPU. Its products are
// computed in what the matrices' are.
class BlockSlots {
 public:
  struct Sizes {
    int64_t slots;
    int64_t heads;
    int64_t kv_heads;  // heads or 1, which serves all
    int64_t dim_head;
    // If set, slot s is hidden from queries i < s: this hides slots and not positions, as in
    // linformer-pytorch.
    bool causal = false;

    int64_t kv_width() const { return kv_heads * dim_head; }
  };

  // With `shared` the values are the keys, and one matrix projects both.
  BlockSlots(const Sizes& sizes, bool shared);

  using Fill = RowSlices::Fill;
  // Makes keys (or values) of `count` rows of the source.
  using Map = std::function<void(const RowBlock& rows, int64_t count, const RowBlock& out)>;

  // ProjectKeys() and ProjectSource() make slots of a sequence's rows: e · keys and f · values, and
  // the biases. They call `fill` for blocks of rows, side by side, with scratch of so many
  // elements. Source: Wang et al. 2020 (arXiv:2006.04768), equation 7.
  // In ProjectKeys() `fill` writes keys and values side by side, or the keys alone if they are
  // shared.
  void ProjectKeys(int64_t rows, const LengthWeights& e, const LengthWeights& f, int64_t scratch,
                   const Fill& fill);
  // Here `fill` writes rows of `width` that keys and values are linear functions of, which then
  // meet slots and not rows: with many rows, there is less to compute. REQUIRES: both projections
  // are of one matrix.
  void ProjectSource(int64_t rows, int64_t width, const LengthWeights& e, const LengthWeights& f,
                     const Fill& fill, const Map& to_keys, const Map& to_values);

  // Takes slots that were made otherwise: keys and values [slots, kv_width].
  void Set(const at::Tensor& keys, const at::Tensor& values);

  // Computes out = softmax(queries · keysᵀ / sqrt(dim_head)) · values for a block of queries
  // [count, heads · dim_head], the first one of which is the sequence's row `row`. REQUIRES: the
  // slots were made by one of the three functions above.
  void Attend(const RowBlock& queries, int64_t row, int64_t count, const RowBlock& out,
              float* scratch) const;
  int64_t ScratchElements() const { return ScratchElements(sizes_); }
  static int64_t ScratchElements(const Sizes& sizes);

 private:
  // Describes a product to be summed up: sums [slots, columns of them] += matrix · the columns of
  // the rows from `column` on.
  struct Sum {
    const LengthWeights& projection;
    int64_t matrix;
    int64_t column;
    at::Tensor sums;
  };
  void AddSums(const LengthWeights& projection, int64_t column, const at::Tensor& slots,
               std::vector<Sum>& sums) const;
  void Finish(const LengthWeights& e, const LengthWeights& f);
  // Makes of the slots what their products read.
  void LayOut();
  void Add(int64_t rows, int64_t width, int64_t scratch, const Fill& fill,
           const std::vector<Sum>& sums);
  void AddSlice(const Sum& sum, int64_t first, int64_t rows, const RowBlock& source) const;
  // Rounds a slice of the source, for the sums of it.
  void RoundSlice(int64_t rows, int64_t width, const RowBlock& source);
  // Hides the slots behind each of a block of queries, the first one of which is `row`, where the
  // attention is causal.
  void HideLater(int64_t row, int64_t count, const RowBlock& scores) const;
  float scale() const;
  void AttendInBf16(const RowBlock& queries, int64_t row, int64_t count, const RowBlock& out,
                    float* scratch) const;
  int64_t kv_column(int64_t head) const {
    return sizes_.kv_heads == 1 ? 0 : head * sizes_.dim_head;
  }

  Sizes sizes_;
  bool shared_;
  bool rounded_ = false;
  at::Tensor keys_, values_;    // [slots, kv_width]; one tensor if they are shared
  at::Tensor transposed_keys_;  // [kv_width, OddLines(slots)]
  RowSlices slices_;
  // In BF16, by pairs of rows: a slice of the source, transposed keys, and values.
  at::Tensor source_pairs_, key_pairs_, value_pairs_;
};

}  // namespace linserve
