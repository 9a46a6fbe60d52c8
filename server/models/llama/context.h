#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "attention/rows/placed_layout.h"

namespace linserve::llama {

// Holds what all layers need to know of a batch.
struct Context {
  PlacedLayout layout;
  at::Tensor mask{};        // BOOL [rows], true = the key is visible; undefined: all
  at::Tensor key_scores{};  // F32 [rows], 0 or BlockAttention::kHidden; undefined: as the mask
  // Holds sines and cosines, F32 [longest, dim_head], of each of Options::rotary.
  std::vector<at::Tensor> rotations{};
};

}  // namespace linserve::llama
