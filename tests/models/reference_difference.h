#pragma once

#include <algorithm>
#include <limits>

#include "attention/rows/aten.h"
#include "models/placement/tensor_bridge.h"

namespace linserve {

// Returns the largest difference from F64 numbers of the same shape, in units of the largest of
// them where that is above 1: without a norm at its end a layer's rows grow, and F32's rounding
// with them. Infinite if the shapes differ.
inline double ScaledDifference(const Tensor& computed, const at::Tensor& expected) {
  const at::Tensor tensor = ToAten(computed);
  if (tensor.sizes() != expected.sizes()) return std::numeric_limits<double>::infinity();
  const double largest = expected.abs().max().item<double>();
  return (tensor.to(at::kDouble) - expected).abs().max().item<double>() / std::max(largest, 1.0);
}

}  // namespace linserve
