#pragma once

#include "models/linear_attention_transformer/layer.h"
#include "models/linear_attention_transformer/options.h"
#include "models/network/layer_stack.h"

namespace linserve::linear_attention_transformer {

using Stack = LayerStack<Layer>;

// Makes the layers of LinearAttentionTransformer: pre-norm, without a final norm.
Stack StackOf(const Options& options);

}  // namespace linserve::linear_attention_transformer
