#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <optional>

#include "attention/rows/layout_part.h"
#include "attention/rows/layout_slices.h"
#include "models/linformer_pytorch/options.h"
#include "models/linformer_pytorch/projection.h"
#include "models/network/layers.h"

namespace linserve::linformer_pytorch {

// Holds what an attention layer reads. Masks are BOOL columns [rows, 1], true where a row is
// hidden, or undefined where none is.
struct AttentionInput {
  at::Tensor queries;  // [rows, width]
  PlacedLayout query_layout;
  at::Tensor source;  // of keys and values
  PlacedLayout source_layout;
  at::Tensor hidden_queries;  // whose query vectors are zeros
  at::Tensor hidden_source;   // whose key and value vectors are zeros

  int64_t sequences() const { return query_layout.sequences(); }
  AttentionInput OfSequences(int64_t first, int64_t count) const;
};

// Is linformer_pytorch.MHAttention: to_q, to_k and to_v of each head without bias; keys and values
// projected along the length by E and F, unless it is full attention.
class MultiHeadAttention {
 public:
  // `shared` is the one E and F of the whole model, with layerwise sharing; else null.
  MultiHeadAttention(const HeadOptions& options, std::shared_ptr<LengthProjection> shared);

  void Declare(const Scope& scope);
  double Flops(int64_t queries, int64_t keys) const;
  // Counts the E and F that are this layer's own: distinct matrices.
  int64_t OwnMatrices() const;

  // Takes result rows [begin, begin + size), all in order, and may work in them. By then the
  // queries up to there are read: the result may be put in their place.
  using Sink = std::function<void(int64_t begin, const at::Tensor& rows)>;
  void Forward(const AttentionInput& input, const LayerScratch& scratch, const Sink& sink) const;

  // Adds the result to the target's rows, laid out as the queries, and calls `then` for each block
  // of them. Target and queries may be the same, and the source, too. REQUIRES: WorksByBlocks().
  void AddByBlocks(const at::Tensor& target, const AttentionInput& input,
                   const BlockStep& then) const;
  bool WorksByBlocks() const { return static_cast<bool>(packed_q_); }

 private:
  struct Slots {
    at::Tensor keys;  // [sequences, heads, slots, dim_head]
    at::Tensor values;
  };
  // Is a group of heads: [first, first + count).
  struct Heads {
    int64_t first;
    int64_t count;
  };

  // Lays the loaded tensors of all heads out as one, and packs them where it works by blocks.
  void Prepare(DType products);
  bool WillPack() const { return !options_.full_attention && !e_->is_convolution(); }
  std::vector<Heads> Groups(const LayerScratch& scratch) const;
  // Multiplies rows by to_q, to_k or to_v of these heads.
  at::Tensor Project(const at::Tensor& rows, const at::Tensor& weight, const Heads& heads,
                     const at::Tensor& hidden) const;
  // Says whether so many source rows of some sequences are projected along their length before they
  // become keys and values.
  bool LengthFirst(int64_t sequences, int64_t rows) const;
  Slots ProjectRows(const AttentionInput& input, const LayerScratch& scratch) const;
  Slots ProjectLengthFirst(const AttentionInput& input, const LayerScratch& scratch) const;
  void AttendToSlots(const AttentionInput& input, const LayerScratch& scratch,
                     const Sink& sink) const;
  void AttendToRows(const AttentionInput& input, const LayerScratch& scratch,
                    const Sink& sink) const;
  at::Tensor Output(const at::Tensor& joined) const;
  void ProjectSource(const AttentionInput& input, size_t sequence, BlockSlots& slots) const;
  void AddOutput(const RowBlock& target, const RowBlock& joined, int64_t count,
                 float* scratch) const;

  HeadOptions options_;
  bool owns_projections_;
  std::shared_ptr<LengthProjection> e_, f_;  // the same one where keys and values share it
  HeadTensors query_weights_, key_weights_, value_weights_;
  at::Tensor to_q_, to_k_, to_v_;  // [heads · dim_head, width]; undefined once they are packed
  PackedWeight packed_q_, packed_k_, packed_v_;
  Linear w_o_;
  std::optional<Linear> w_o_2_;
};

}  // namespace linserve::linformer_pytorch
