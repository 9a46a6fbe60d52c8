#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace linserve {

// These are the functions of the package `transformers`. kGelu is the exact one, kTanhGelu its
// approximation by tanh, kGelu10 the exact one cut to [-10, 10], kQuickGelu x · sigmoid(1.702 x),
// kRelu2 the square of kRelu.
enum class Activation : uint8_t {
  kGelu,
  kTanhGelu,
  kGelu10,
  kRelu,
  kSilu,
  kQuickGelu,
  kRelu2,
  kRelu6,
  kSigmoid,
  kTanh,
  kElu,
  kLeakyRelu,
  kMish,
  kLaplace,
  kExp,
  kIdentity,
};

// Says whether the function is nowhere less than 0.
bool IsNowhereNegative(Activation activation);

// x = activation(x)
void Activate(Activation activation, at::Tensor& x);

}  // namespace linserve
