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
// Does the same, but copies what is less than half of the memory that it lies in: whoever holds a
// sequence's results is not to hold those of its whole batch.
Tensor FromAtenApart(const at::Tensor& tensor);

at::ScalarType ToScalarType(DType dtype);

// Returns the type of the tensors of a model that computes in `dtype`. On the CPU that is what its
// products are computed in, and tensors are F32.
at::ScalarType TensorType(DType dtype, const at::Device& device);

}  // namespace linserve
