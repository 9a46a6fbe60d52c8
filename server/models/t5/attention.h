#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "attention/blocks/block_attention.h"
#include "attention/rows/spans.h"
#include "models/network/layers.h"
#include "models/t5/context.h"
#include "models/t5/options.h"

namespace linserve::t5 {

// Is the self-attention of a layer, between the rows that it reads and what is added to the
// residual stream.
class Attention {
 public:
  // `layer` counts from 0.
  Attention(const Options& options, int64_t layer);

  void Declare(const Scope& scope);
  bool packed() const { return qkv_.packed && out_.packed; }
  double Flops(int64_t length) const;

  // Returns what its table adds to scores in sequences of up to so many rows, as kernels of devices
  // want it; undefined: it has no table of its own.
  at::Tensor Distances(int64_t longest) const;

  // Computes as tensors, on any device, what out() then multiplies: [rows, heads · dim_head].
  at::Tensor Attended(const at::Tensor& rows, const Context& context) const;
  const Linear& out() const { return out_; }

  // The others need packed() weights, and work on blocks of rows: of queries, keys and values side
  // by side, each as wide as the others.
  const Linear& qkv() const { return qkv_; }
  const BlockAttention& blocks() const { return blocks_; }
  // Returns what is added to scores in the sequence that begins at the batch's row `start`.
  BlockAttention::Scores ScoresOf(int64_t start, const Context& context) const;

 private:
  // Computes all sequences at once: queries, keys and values are `parts`.
  at::Tensor AttendOnDevice(const std::vector<at::Tensor>& parts, const Context& context) const;
  // Computes a span of sequences: queries, keys and values are [count, heads, length, dim_head].
  at::Tensor AttendSpan(const Span& span, const at::Tensor& queries, const at::Tensor& keys,
                        const at::Tensor& values, const at::Tensor& mask,
                        const at::Tensor& distances) const;

  Options options_;
  size_t place_;  // in Context::distances
  bool has_table_;
  at::Tensor table_;            // [buckets, heads]
  Linear query_, key_, value_;  // without weights once they are joined
  Linear qkv_, out_;
  BlockAttention blocks_;
};

}  // namespace linserve::t5
