#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include "attention/blocks/block_attention.h"
#include "attention/blocks/block_convolution.h"
#include "attention/blocks/block_landmarks.h"
#include "attention/rows/spans.h"
#include "models/network/layers.h"
#include "models/network/self_attention_by_blocks.h"
#include "models/transformers/context.h"
#include "models/transformers/global_tokens/global_projections.h"
#include "models/transformers/names.h"
#include "models/transformers/options/options.h"
#include "models/transformers/positions/relative_scores.h"

namespace linserve::transformers {

// Is the self-attention of a layer, between the rows that it reads and those that are added to the
// residual stream.
class Attention {
 public:
  Attention(const Options& options, const LayerKind& kind);

  // `positions` is the table of relative positions, undefined where there is none; it is read once
  // all is loaded.
  void Declare(const Scope& layer, const at::Tensor& positions);
  bool packed() const { return qkv_.packed && out_.packed && (!globals_ || globals_->packed()); }
  double Flops(int64_t length) const;

  // Computes as tensors, on any device, what out() then multiplies: [rows, dim].
  at::Tensor Attended(const at::Tensor& rows, const Context& context) const;
  const Linear& out() const { return out_; }

  // The others need packed() weights, and work on blocks of rows.
  const BlockAttention& blocks() const { return blocks_; }
  // Returns the width of queries, keys and values side by side, and of keys and values behind them
  // that queries of global tokens see, if those have projections of their own.
  int64_t width(const Context& context) const {
    return (ProjectsGlobals(context) ? 5 : 3) * options_.dim;
  }
  // Makes them of `count` rows.
  void Project(const RowBlock& rows, int64_t count, const RowBlock& qkv,
               const Context& context) const;
  // Turns queries and keys of a sequence's rows, the first one of which is its row `place`.
  void Rotate(const RowBlock& qkv, int64_t place, int64_t count, const Context& context) const;
  // Returns what is added to scores in the sequence that begins at the batch's row `start`.
  BlockAttention::Scores ScoresOf(int64_t start, const Context& context) const;
  // Says whether attention is by landmarks, which are made of a whole sequence.
  bool by_landmarks() const { return options_.landmarks.count > 0; }
  BlockLandmarks::Sizes landmarks() const {
    return {options_.heads, options_.dim_head(), options_.landmarks.count,
            options_.landmarks.by_head};
  }
  // Returns what attends in a sequence of a context with globals, of which `queries` are those that
  // GlobalQueries() makes of all rows.
  SelfAttentionByBlocks::Attend AttendIn(size_t sequence, const at::Tensor& qkv,
                                         const BlockAttention::Keys& keys,
                                         const BlockAttention::Scores& scores,
                                         const at::Tensor& queries, const Context& context) const;
  at::Tensor GlobalQueries(const at::Tensor& rows, const Context& context) const;
  bool convolves() const { return convolution_.defined(); }
  // Adds the convolution of values, if there is one, to what `count` rows attended to. `qkv` are
  // all rows of the sequence, and the first one of those is its row `place`.
  void AddConvolved(const RowBlock& qkv, int64_t length, int64_t place, int64_t count,
                    const RowBlock& attended) const;
  // Adds what the attended values become to a block of the residual stream.
  void AddTo(const RowBlock& rows, const RowBlock& attended, int64_t count) const {
    out_.Add(rows, attended, count);
  }

 private:
  at::Tensor AttendOnDevice(const at::Tensor& queries, const at::Tensor& keys,
                            const at::Tensor& values, const Context& context) const;
  // Writes what rows of a context with globals attend to.
  void AttendAround(const at::Tensor& rows, const at::Tensor& queries, const at::Tensor& keys,
                    const at::Tensor& values, const Context& context,
                    const at::Tensor& attended) const;
  void DeclareProjections(const Scope& layer);
  // Computes a span of sequences: queries, keys and values are [count, heads, length, dim_head].
  at::Tensor AttendSpan(const Span& span, const at::Tensor& queries, const at::Tensor& keys,
                        const at::Tensor& values, const at::Tensor& mask,
                        const Context& context) const;
  // Returns how many heads are turned: queries and keys lie side by side, and values behind them.
  int64_t turned_heads() const { return (options_.turns_values ? 3 : 2) * options_.heads; }
  bool norms_keys() const { return NamesOf(options_.family).key_norm != nullptr; }
  bool ProjectsGlobals(const Context& context) const {
    return globals_ && context.globals && context.globals->rows.size(0) > 0;
  }
  BlockAttention::Sizes SizesFor(DType products, int64_t window) const;
  void Join();
  void Prepare(DType products, const at::Tensor& positions);

  Options options_;
  LayerKind kind_;
  Linear query_, key_, value_;          // without weights once they are joined
  at::Tensor query_bias_, value_bias_;  // where the weights are joined by head
  Linear qkv_, out_;
  LayerNorm query_norm_, key_norm_;  // of all heads together
  RelativeScores relative_;
  at::Tensor convolution_;  // [heads, 1, size, 1]; undefined: none
  BlockConvolution block_convolution_;
  BlockAttention blocks_;
  std::optional<GlobalProjections> globals_;
  BlockAttention whole_;  // is as blocks_, without a window
};

}  // namespace linserve::transformers
