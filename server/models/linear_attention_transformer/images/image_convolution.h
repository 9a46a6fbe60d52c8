#pragma once

#include <cstdint>

#include "models/network/layers.h"
#include "models/network/parameters.h"

namespace linserve::linear_attention_transformer {

// Holds positions [begin, end) along one axis of an image.
struct Stripe {
  int64_t begin = 0;
  int64_t end = 0;

  int64_t size() const { return end - begin; }
  // Returns the stripe with `halo` positions more to both sides, as far as there are any.
  Stripe Widened(int64_t halo, int64_t positions) const;
};

// Is a torch.nn.Conv2d that keeps the size: an odd kernel, half of it padded with zeros, stride 1.
struct ImageConvolution {
  ImageConvolution(int64_t in, int64_t out, int64_t kernel)
      : inputs(in), outputs(out), kernel_size(kernel), of_pixels(in, out) {}

  // A kernel of one pixel on the CPU becomes `of_pixels`, whose outputs are multiplied by `scale`.
  void Declare(const Scope& scope, double scale = 1);

  // Returns how many rows beside a stripe its result depends on.
  int64_t halo() const { return kernel_size / 2; }

  // Returns a stripe of the result along `axis` (2: height, 3: width). `image` [images, inputs,
  // height, width] holds the stripe `held` of the whole image, which must include
  // wanted.Widened(halo()). REQUIRES: it did not become of_pixels.
  at::Tensor operator()(const at::Tensor& image, int64_t axis, Stripe held, Stripe wanted) const;

  int64_t Flops() const { return 2 * inputs * outputs * kernel_size * kernel_size; }  // a pixel

  int64_t inputs;
  int64_t outputs;
  int64_t kernel_size;
  at::Tensor weight;  // [outputs, inputs, kernel, kernel]
  at::Tensor bias;    // [outputs]
  Linear of_pixels;   // packed, or without a weight
};

}  // namespace linserve::linear_attention_transformer
