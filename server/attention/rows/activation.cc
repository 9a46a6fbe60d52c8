#include "attention/rows/activation.h"

#include <numbers>

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
    case Activation::kGelu10:
      at::gelu_(x).clamp_(-10, 10);
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
    case Activation::kElu:
      at::elu_(x);
      break;
    case Activation::kLeakyRelu:
      at::leaky_relu_(x);
      break;
    case Activation::kMish:
      at::mish_(x);
      break;
    case Activation::kLaplace: {
      constexpr double kMean = 0.707107;  // as the package has it, and the other, too
      constexpr double kDeviation = 0.282095;
      x.sub_(kMean).div_(kDeviation * std::numbers::sqrt2).erf_().add_(1).mul_(0.5);
      break;
    }
    case Activation::kExp:
      at::exp_(x);
      break;
    case Activation::kIdentity:
      break;
  }
}

bool IsNowhereNegative(Activation activation) {
  switch (activation) {
    case Activation::kRelu:
    case Activation::kRelu2:
    case Activation::kRelu6:
    case Activation::kSigmoid:
    case Activation::kLaplace:
    case Activation::kExp:
      return true;
    default:
      return false;
  }
}

}  // namespace linserve
