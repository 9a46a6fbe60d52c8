#pragma once

#include <limits>
#include <vector>

#include "core/tensor/tensor.h"

namespace linserve {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Returns the elements of a tensor of any type, as F32.
inline std::vector<float> Values(const Tensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.elements()));
  ConvertToFloat(tensor.dtype(), tensor.bytes(), tensor.elements(), values.data());
  return values;
}

}  // namespace linserve
