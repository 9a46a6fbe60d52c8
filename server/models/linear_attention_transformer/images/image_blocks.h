#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "models/network/layers.h"

namespace linserve::linear_attention_transformer {

// Computes ImageLinearAttention with kernels of one pixel block by block of pixels, so that neither
// queries nor keys nor values ever exist as a whole. REQUIRES: packed layers.
struct ImageByBlocks {
  const Linear& to_q;  // multiplied by `scale`
  const Linear& to_k;  // multiplied by `scale`
  const Linear& to_v;
  const Linear& to_out;
  int64_t heads;
  double scale;
  bool softmax_queries;

  // Takes an image x [chan, pixels] and, if defined, its context [chan, pixels], whose keys are
  // without the scale, and writes the result [chan_out, pixels], all contiguous.
  void Compute(const at::Tensor& x, const at::Tensor& context, const at::Tensor& result) const;
};

}  // namespace linserve::linear_attention_transformer
