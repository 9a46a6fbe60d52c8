#include "attention/linear/random_features.h"

#include <utility>

#include "attention/rows/aten.h"
#include "attention/rows/attention_rows.h"
#include "attention/rows/product.h"

namespace linserve {

bool RandomFeatures::Magnifies(int64_t directions) const {
  constexpr int64_t kFew = 8;
  if (map == Map::kKernel) return directions < kFew || !IsNowhereNegative(kernel);
  return map == Map::kFourier;
}

// Returns u [..., rows, directions].
at::Tensor RandomFeatures::Directions(const at::Tensor& rows) const {
  return Product(rows * scale, projection.to(rows.scalar_type()).transpose(0, 1));
}

at::Tensor RandomFeatures::Finish(at::Tensor u, const at::Tensor& rows,
                                  const at::Tensor& shift) const {
  if (map == Map::kKernel) {
    Activate(kernel, u);
  } else if (map == Map::kFourier) {
    u = at::cat({u.cos(), u.sin()}, -1);
  } else {
    at::Tensor offset = rows.square().sum(-1, /*keepdim=*/true).mul_(scale * scale / 2);
    if (shift.defined()) offset = offset + shift;
    u = map == Map::kMirrored ? at::cat({u - offset, -u - offset}, -1) : u.sub_(offset);
    u.exp_();
  }
  u.add_(eps).mul_(ratio);
  return constant ? at::constant_pad_nd(u, {0, 1}, *constant) : u;
}

at::Tensor RandomFeatures::Of(const at::Tensor& rows, const at::Tensor& shift) const {
  return Finish(Directions(rows), rows, shift);
}

at::Tensor RandomFeatures::OfShiftedRows(const at::Tensor& rows) const {
  at::Tensor u = Directions(rows);
  const at::Tensor shift = map == Map::kKernel ? at::Tensor() : u.amax(-1, /*keepdim=*/true);
  return Finish(std::move(u), rows, shift);
}

at::Tensor RandomFeatures::Largest(const at::Tensor& rows) const {
  at::Tensor largest;
  ForReadSlices(rows, [&](int64_t row, int64_t count) {
    const at::Tensor own = Directions(SumRows(rows, row, count)).amax({-2, -1}, /*keepdim=*/true);
    largest = largest.defined() ? at::maximum(largest, own) : own;
  });
  return heads_share_shift ? largest.amax(-3, /*keepdim=*/true) : largest;
}

}  // namespace linserve
