#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "attention/rows/placed_layout.h"

namespace linserve::t5 {

// Holds what all layers need to know of a batch.
struct Context {
  PlacedLayout layout;
  at::Tensor mask{};        // BOOL [rows], true = the key is visible; undefined: all
  at::Tensor key_scores{};  // F32 [rows], 0 or BlockAttention::kHidden; undefined: as the mask
  // Holds what the layers' tables add to scores (ByDistance()): of the first layer, or of each.
  std::vector<at::Tensor> distances{};
};

}  // namespace linserve::t5
