#include "attention/blocks/activation.h"

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
  }
}

void BiasActivate(Activation activation, const RowBlock& rows, int64_t count, int64_t width,
                  const float* bias) {
  switch (activation) {
    case Activation::kGelu:
      return BiasGelu(rows, count, width, bias);
    case Activation::kTanhGelu:
      return BiasTanhGelu(rows, count, width, bias);
    case Activation::kRelu:
      return BiasRelu(rows, count, width, bias);
    case Activation::kSilu:
      return BiasSilu(rows, count, width, bias);
  }
}

}  // namespace linserve
