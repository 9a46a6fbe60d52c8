#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "attention/rows/activation.h"

namespace linserve {

// Makes random features φ of rows x [..., rows, width] out of u = projection · (scale · x), so that
// φ(q) · φ(k) stands for a weight of q and k:
//   kPositive  ratio · (exp(u − |scale · x|²/2 − shift) + eps), for exp(scale² · q · k) (FAVOR+)
//   kMirrored  the same of u and, beside it, of −u
//   kFourier   ratio · (cos(u) + eps) and, beside it, the same of sin(u), for
//              exp(-scale² · |q − k|²/2)
//   kKernel    ratio · (kernel(u) + eps), generalized attention
// A shift that all keys share, or all features of a query, cancels where attention divides by the
// weights, but for what eps adds. It keeps the exponents from overflowing.
// Source: Choromanski et al. 2020, "Rethinking Attention with Performers" (arXiv:2009.14794).
struct RandomFeatures {
  enum class Map : uint8_t { kPositive, kMirrored, kFourier, kKernel };

  Map map = Map::kPositive;
  at::Tensor projection{};  // [directions, width]
  double scale = 1;         // width^-1/4 makes the weights those of scaled dot products
  double ratio = 1;
  double eps = 0;
  Activation kernel = Activation::kRelu;
  std::optional<double> constant{};  // a feature that all rows have besides, the last one
  bool heads_share_shift = false;    // Largest() is that of all heads, as in scBERT's code

  // Returns the number of features of a row.
  int64_t features() const { return FeaturesOf(projection.size(0)); }
  // Returns it for a projection of so many directions.
  int64_t FeaturesOf(int64_t directions) const {
    const bool pairs = map == Map::kMirrored || map == Map::kFourier;
    return directions * (pairs ? 2 : 1) + (constant ? 1 : 0);
  }

  // Says whether the weights of a query may nearly cancel out, so that what is rounded in queries
  // and keys is magnified: features may be negative, or are so few that all may be next to 0.
  bool Magnifies(int64_t directions) const;

  // Gives φ [..., rows, features] in the type of the rows. `shift`, as far as it broadcasts to
  // [..., rows, 1], is subtracted from the exponents of kPositive and kMirrored; undefined: none.
  at::Tensor Of(const at::Tensor& rows, const at::Tensor& shift = {}) const;
  // Gives φ where each row's shift is its own largest u, as performer-pytorch has it of queries.
  at::Tensor OfShiftedRows(const at::Tensor& rows) const;
  // Returns the largest u of all rows and features, [..., 1, 1], or of all heads of rows [...,
  // heads, rows, width], too, which performer-pytorch shifts keys by. In the type of the sums
  // (attention_rows.h); scratch is bounded for any length.
  at::Tensor Largest(const at::Tensor& rows) const;

 private:
  at::Tensor Directions(const at::Tensor& rows) const;
  at::Tensor Finish(at::Tensor u, const at::Tensor& rows, const at::Tensor& shift) const;
};

}  // namespace linserve
