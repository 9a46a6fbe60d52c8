#include "models/t5/rows_in_f16.h"

#include "attention/rows/aten.h"

namespace linserve::t5 {

void ShrinkInF16(const std::vector<at::Tensor*>& weights, const std::vector<LayerNorm*>& norms) {
  constexpr double kShare = 1.0 / 64;
  // Weights that are packed are not there any more.
  const at::Tensor& first = *weights.front();
  if (!first.defined() || first.scalar_type() != at::kHalf) return;
  for (at::Tensor* weight : weights) *weight = *weight * kShare;
  for (LayerNorm* norm : norms) norm->eps *= kShare * kShare;
}

}  // namespace linserve::t5
