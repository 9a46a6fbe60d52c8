#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "models/network/layers.h"
#include "models/transformers/context.h"
#include "models/transformers/options/options.h"

namespace linserve::transformers {

// Convolves the rows of each sequence along its length, over all features of a group, and adds the
// result to others (DeBERTa's ConvLayer): rows = norm(rows + activation(convolution(read))). Around
// a sequence there are zeros, and its hidden rows become zeros.
class RowConvolution {
 public:
  explicit RowConvolution(const Options& options);

  void Declare(const Scope& scope);
  // Both are [rows, dim].
  void AddTo(at::Tensor& rows, const at::Tensor& read, const Context& context) const;

 private:
  void Prepare(DType products);
  void AddByBlocks(const at::Tensor& rows, const at::Tensor& read, const Context& context) const;
  // Says for each row which rows of `read` its kernel sees, in order: I64 [rows, size], -1: none.
  at::Tensor Seen(int64_t rows, const PlacedLayout& layout) const;

  RowKernel kernel_;
  int64_t dim_;
  at::Tensor weight_;  // [dim, dim / groups, size]; undefined once it is that of product_
  Linear product_;     // of the rows that a kernel sees, side by side
  LayerNorm norm_;
};

}  // namespace linserve::transformers
