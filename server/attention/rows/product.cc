#include "attention/rows/product.h"

#include "attention/rows/aten.h"

namespace linserve {

at::Tensor Product(const at::Tensor& a, const at::Tensor& b) {
  return a.size(-1) == 1 ? a * b : at::matmul(a, b);
}

void SetProduct(at::Tensor& out, const at::Tensor& a, const at::Tensor& b) {
  if (a.size(-1) == 1) {
    at::mul_out(out, a, b);
  } else {
    at::matmul_out(out, a, b);
  }
}

}  // namespace linserve
