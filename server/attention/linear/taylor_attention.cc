#include "attention/linear/taylor_attention.h"

#include "attention/rows/aten.h"

namespace linserve {
namespace {

constexpr double kSmallestNorm = 1e-12;
constexpr double kTaylorFloor = 1e-6;  // about what rounding leaves of 1 - 1

at::Tensor Features(const at::Tensor& x) {
  const at::Tensor norm = x.norm(2, {-1}, /*keepdim=*/true).clamp_min(kSmallestNorm);
  return at::cat({at::ones_like(norm), x / norm}, -1);
}

}  // namespace

FeatureForm TaylorForm() { return {Features, Features, kTaylorFloor}; }

at::Tensor TaylorAttention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                           const Visible& visible) {
  return FeatureAttention(query, key, value, visible, TaylorForm());
}

}  // namespace linserve
