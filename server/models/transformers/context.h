#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <optional>

#include "attention/rows/placed_layout.h"
#include "models/transformers/global_tokens/global_tokens.h"

namespace linserve::transformers {

// Holds what all layers need to know of a batch.
struct Context {
  PlacedLayout layout;
  at::Tensor mask{};        // BOOL [rows], true = the key is visible; undefined: all
  at::Tensor key_scores{};  // F32 [rows], 0 or BlockAttention::kHidden; undefined: as the mask
  at::Tensor distances{};  // F32 [heads, 2 · longest - 1]: what is added to scores; undefined: none
  at::Tensor places{};     // of relative positions (PlacesByDistance); undefined: there are none
  std::optional<GlobalTokens> globals{};     // nullopt: all that rows see is their windows
  std::map<double, at::Tensor> rotations{};  // by theta: F32 [longest, dim_head], sines and cosines
};

}  // namespace linserve::transformers
