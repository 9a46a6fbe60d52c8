#pragma once

#include <ATen/core/Tensor.h>

namespace linserve {

// These functions multiply matrices whose sizes come from the lengths of sequences. A column times
// a row (of one token) is multiplied out, for which MKL takes ten times as long on some processors
// as for two columns.

// Returns a [..., m, k] · b [..., k, n] -> [..., m, n], as torch.matmul has it.
at::Tensor Product(const at::Tensor& a, const at::Tensor& b);
// Computes out = a · b. REQUIRES: `out` is of the product's shape.
void SetProduct(at::Tensor& out, const at::Tensor& a, const at::Tensor& b);

}  // namespace linserve
