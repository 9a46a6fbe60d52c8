#pragma once

#include <ATen/core/Tensor.h>

#include "core/tensor/tensor.h"

namespace linserve {

// Returns a LibTorch tensor that views the bytes of `tensor` (and keeps them alive), or a copy if
// they are not aligned for their type. It must not be written to.
at::Tensor ToAten(const Tensor& tensor);

// Goes the other way: returns a view of the tensor's memory if it is contiguous and on the host,
// else a copy of it.
Tensor FromAten(const at::Tensor& tensor);

at::ScalarType ToScalarType(DType dtype);

}  // namespace linserve
