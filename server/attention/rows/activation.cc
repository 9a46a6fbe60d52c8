#include "attention/rows/activation.h"

#include "attention/rows/aten.h"

namespace linserve {

void Activate(Activation activation, at::Tensor& x) {
  switch (activation) {
    case Activation::kGelu:
      at::gelu_(x);
      break;
    case Activation::kTanhGelu:
      at::gelu_(x, "tanh");
      break;
    case Activation::kRelu:
      at::relu_(x);
      break;
    case Activation::kSilu:
      at::silu_(x);
      break;
    case Activation::kTanh:
      at::tanh_(x);
      break;
    case Activation::kIdentity:
      break;
  }
}

}  // namespace linserve
