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
    case Activation::kQuickGelu:
      x.mul_(at::sigmoid(x * 1.702));
      break;
    case Activation::kRelu2:
      at::relu_(x).square_();
      break;
    case Activation::kRelu6:
      at::clamp_(x, 0, 6);
      break;
    case Activation::kSigmoid:
      at::sigmoid_(x);
      break;
    case Activation::kTanh:
      at::tanh_(x);
      break;
    case Activation::kIdentity:
      break;
  }
}

}  // namespace linserve
