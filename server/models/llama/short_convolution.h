#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "attention/rows/placed_layout.h"
#include "models/llama/options.h"
#include "models/network/layers.h"

namespace linserve::llama {

// Is the gated short convolution of LFM2's layers, between the rows that it reads and what is added
// to the residual stream: of [b, c, x] = in(rows) it is out(c · convolution(b · x)), where each
// feature has a kernel of its own over a few rows up to the row itself. O(length).
class ShortConvolution {
 public:
  explicit ShortConvolution(const Options& options);

  void Declare(const Scope& scope);
  bool packed() const { return in_.packed && out_.packed; }
  double Flops(int64_t length) const;

  // Computes as tensors, on any device, what out() then multiplies: [rows, dim].
  at::Tensor Convolved(const at::Tensor& rows, const PlacedLayout& layout) const;
  const Linear& out() const { return out_; }

  // The others need packed() weights, and work on blocks of rows: of c, b and x side by side,
  // `width` of them.
  int64_t width() const { return 3 * dim_; }
  // Makes c and b · x of `count` rows.
  void Project(const RowBlock& rows, int64_t count, const RowBlock& parts) const;
  // Makes what out() multiplies of a sequence's rows, the first one of which is its row `place`, in
  // the place of b. The rows before it stand before the block.
  void Convolve(const RowBlock& parts, int64_t place, int64_t count) const;
  RowBlock Result(const RowBlock& parts) const { return parts.Columns(dim_); }

 private:
  int64_t dim_;
  int64_t size_;  // of a kernel
  bool biased_;
  Linear in_, out_;
  at::Tensor weight_;   // [dim, 1, size], until it is loaded
  at::Tensor kernels_;  // F32 [size, dim]
  at::Tensor bias_;     // F32 [dim]
};

}  // namespace linserve::llama
