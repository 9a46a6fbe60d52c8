#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace linserve {

// These are the functions of the package `transformers`. kGelu is the exact one, kTanhGelu its
// approximation by tanh, kQuickGelu x · sigmoid(1.702 x), kRelu2 the square of kRelu.
enum class Activation : uint8_t {
  kGelu,
  kTanhGelu,
  kRelu,
  kSilu,
  kQuickGelu,
  kRelu2,
  kRelu6,
  kSigmoid,
  kTanh,
  kIdentity,
};

// x = activation(x)
void Activate(Activation activation, at::Tensor& x);

}  // namespace linserve
