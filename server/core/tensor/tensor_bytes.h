#pragma once

#include <cstdint>

#include "core/tensor/tensor.h"

namespace linserve {

// Returns the bytes of all tensors together.
inline int64_t BytesOf(const TensorMap& tensors) {
  size_t bytes = 0;
  for (const auto& [name, tensor] : tensors) bytes += tensor.byte_size();
  return static_cast<int64_t>(bytes);
}

}  // namespace linserve
