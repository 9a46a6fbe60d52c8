#include "models/linear_attention_transformer/images/image_convolution.h"

#include <algorithm>

#include "attention/rows/aten.h"

namespace linserve::linear_attention_transformer {

Stripe Stripe::Widened(int64_t halo, int64_t positions) const {
  return {std::max<int64_t>(begin - halo, 0), std::min(end + halo, positions)};
}

void ImageConvolution::Declare(const Scope& scope, double scale) {
  scope.Declare("weight", weight, {outputs, inputs, kernel_size, kernel_size}, Init::kUniform);
  scope.Declare("bias", bias, {outputs}, Init::kZeros);
  if (kernel_size > 1) return;
  scope.Packs(weight);
  scope.AfterLoading([this, scale](DType products) {
    if (!weight.is_cpu()) return;
    of_pixels.weight = weight.view({outputs, inputs}) * scale;
    of_pixels.bias = bias * scale;
    of_pixels.Pack(products);
    if (!of_pixels.packed) return;
    weight.reset();
    bias.reset();
  });
}

at::Tensor ImageConvolution::operator()(const at::Tensor& image, int64_t axis, Stripe held,
                                        Stripe wanted) const {
  const int64_t first = std::max(wanted.begin - halo(), held.begin);
  const int64_t last = std::min(wanted.end + halo(), held.end);
  at::Tensor part = image.narrow(axis, first - held.begin, last - first);
  // There are zeros where the whole image ends; along the other axis the convolution pads by
  // itself.
  const int64_t before = halo() - (wanted.begin - first);
  const int64_t after = halo() - (last - wanted.end);
  if (before + after > 0) {
    part = axis == 3 ? at::constant_pad_nd(part, {before, after})
                     : at::constant_pad_nd(part, {0, 0, before, after});
  }
  const int64_t padding = halo();
  return axis == 3 ? at::conv2d(part, weight, bias, {1, 1}, at::IntArrayRef({padding, 0}))
                   : at::conv2d(part, weight, bias, {1, 1}, at::IntArrayRef({0, padding}));
}

}  // namespace linserve::linear_attention_transformer
