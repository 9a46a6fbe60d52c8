#include "attention/linear/kernel_attention.h"

#include <limits>

#include "attention/rows/aten.h"

namespace linserve {
namespace {

// Computes elu(x) + 1, for x << 0 without the difference of almost equal numbers that (e^x - 1) + 1
// is.
at::Tensor Phi(const at::Tensor& x) { return x.clamp_max(0).exp_().add_(x.clamp_min(0)); }

}  // namespace

FeatureForm KernelForm(bool normalize) {
  FeatureForm form{Phi, Phi, std::nullopt};
  // The values' sum is zero, too, where the weights' is.
  if (normalize) form.floor = std::numeric_limits<float>::min();
  return form;
}

at::Tensor KernelAttention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                           const Visible& visible, bool normalize) {
  return FeatureAttention(query, key, value, visible, KernelForm(normalize));
}

}  // namespace linserve
