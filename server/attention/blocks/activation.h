#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "attention/blocks/block_math.h"

namespace linserve {

// kGelu is the exact one, kTanhGelu its approximation by tanh.
enum class Activation : uint8_t { kGelu, kTanhGelu, kRelu, kSilu };

// x = activation(x)
void Activate(Activation activation, at::Tensor& x);

// rows [count, width] = activation(rows + bias). `bias` may be nullptr.
void BiasActivate(Activation activation, const RowBlock& rows, int64_t count, int64_t width,
                  const float* bias);

}  // namespace linserve
