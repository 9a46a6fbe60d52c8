#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "models/network/layers.h"

namespace linserve::t5 {

// F16 ends at 65,504, and rows between T5's layers grow beyond that. So all that is added to them
// is shrunk, and rows with it. Whatever reads rows does so through norms, which make up for it.

// Shrinks what these weights, if they are of F16, add to rows, and the epsilons of these norms
// alike.
void ShrinkInF16(const std::vector<at::Tensor*>& weights, const std::vector<LayerNorm*>& norms);

}  // namespace linserve::t5
