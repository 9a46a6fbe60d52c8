#pragma once

#include "models/network/layer_stack.h"
#include "models/performer_pytorch/layer.h"
#include "models/performer_pytorch/options.h"

namespace linserve::performer_pytorch {

using Stack = LayerStack<Layer>;

// Makes the layers of performer_pytorch.Performer, which has no last norm.
Stack StackOf(const Options& options);

// Declares the layers, also under the second name that the module which counts forward passes gives
// them.
void Declare(Stack& stack, const Scope& scope);

}  // namespace linserve::performer_pytorch
