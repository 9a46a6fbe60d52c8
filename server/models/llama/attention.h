#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "attention/blocks/block_attention.h"
#include "attention/rows/spans.h"
#include "models/llama/context.h"
#include "models/llama/options.h"
#include "models/network/layers.h"

namespace linserve::llama {

// Is the self-attention of a layer, between the rows that it reads and what is added to the
// residual stream.
class Attention {
 public:
  Attention(const Options& options, const LayerKind& kind);

  void Declare(const Scope& scope);
  bool packed() const { return qkv_.packed && out_.packed; }
  double Flops(int64_t length) const;

  // Computes as tensors, on any device, what out() then multiplies: [rows, heads · dim_head].
  at::Tensor Attended(const at::Tensor& rows, const Context& context) const;
  const Linear& out() const { return out_; }

  // The others need packed() weights, and work on blocks of rows: of queries, keys and values side
  // by side, `width` of them.
  const BlockAttention& blocks() const { return blocks_; }
  int64_t width() const { return options_.query_width() + 2 * options_.key_width(); }
  int64_t keys() const { return options_.query_width(); }  // their first column
  int64_t values() const { return options_.query_width() + options_.key_width(); }
  // Makes queries, keys and values of `count` rows.
  void Project(const RowBlock& rows, int64_t count, const RowBlock& qkv) const;
  // Turns queries and keys of a sequence's rows, the first one of which is its row `place`.
  void Turn(const RowBlock& qkv, int64_t place, int64_t count, const Context& context) const;

 private:
  // Returns how many heads are turned: those of queries, and beside them those of keys.
  int64_t TurnedHeads() const { return options_.heads + options_.key_heads; }
  void Prepare(DType products);
  // Has the halves of each head that is turned lie side by side, as pairs.
  at::Tensor Paired(const at::Tensor& outputs, int64_t heads) const;
  at::Tensor NormHeads(const at::Tensor& rows, const LayerNorm& norm) const;
  at::Tensor AttendOnDevice(const at::Tensor& queries, const at::Tensor& keys,
                            const at::Tensor& values, const Context& context) const;
  at::Tensor AttendBySpans(const at::Tensor& queries, const at::Tensor& keys,
                           const at::Tensor& values, const Context& context) const;
  // Attends by heads of sequences of equal lengths.
  at::Tensor AttendSpan(const Span& span, const at::Tensor& queries, const at::Tensor& keys,
                        const at::Tensor& values, const at::Tensor& mask) const;

  Options options_;
  LayerKind kind_;
  Linear query_, key_, value_;  // without weights once they are joined
  Linear qkv_, out_;
  LayerNorm query_norm_, key_norm_;  // of each head, or all
  BlockAttention blocks_;
};

}  // namespace linserve::llama
