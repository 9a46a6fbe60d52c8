#pragma once

#include "models/network/layers.h"
#include "models/network/parameters.h"

namespace linserve::transformers {

// Declares a norm, which checkpoints that came from TensorFlow call by its other names.
inline void DeclareNorm(const Scope& scope, LayerNorm& norm) {
  norm.Declare(scope);
  scope.Declare("gamma", norm.weight, {norm.width}, Init::kOnes);
  if (norm.with_bias) scope.Declare("beta", norm.bias, {norm.width}, Init::kZeros);
}

}  // namespace linserve::transformers
