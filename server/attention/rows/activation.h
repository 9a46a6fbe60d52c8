#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace linserve {

// kGelu is the exact one, kTanhGelu its approximation by tanh.
enum class Activation : uint8_t { kGelu, kTanhGelu, kRelu, kSilu, kTanh, kIdentity };

// x = activation(x)
void Activate(Activation activation, at::Tensor& x);

}  // namespace linserve
