#include "models/layers.h"

#include <algorithm>

#include "attention/aten.h"

namespace linserve {

void Linear::Declare(const Scope& scope) {
  scope.Declare("weight", weight, {outputs, inputs}, Init::kUniform);
  if (with_bias) scope.Declare("bias", bias, {outputs}, Init::kZeros);
}

at::Tensor Linear::operator()(const at::Tensor& x) const { return at::linear(x, weight, bias); }

void LayerNorm::Declare(const Scope& scope) {
  scope.Declare("weight", weight, {width}, Init::kOnes);
  scope.Declare("bias", bias, {width}, Init::kZeros);
}

at::Tensor LayerNorm::operator()(const at::Tensor& x) const {
  return at::layer_norm(x, {width}, weight, bias, 1e-5);
}

void FeedForward::Declare(const Scope& scope, const char* first, const char* second) {
  w1.Declare(scope / first);
  w2.Declare(scope / second);
}

at::Tensor FeedForward::operator()(const at::Tensor& x) const {
  const at::Tensor inner = w1(x);
  at::Tensor activated = gated ? inner.narrow(-1, 0, w2.inputs) : inner;
  if (activation == Activation::kGelu) {
    at::gelu_(activated);
  } else {
    at::relu_(activated);
  }
  if (!gated) return w2(activated);
  return w2(activated.mul_(inner.narrow(-1, w2.inputs, w2.inputs)));
}

void AddByRows(at::Tensor& target, const at::Tensor& source,
               const std::function<at::Tensor(const at::Tensor&)>& function) {
  constexpr int64_t kRows = 4096;
  for (int64_t row = 0; row < source.size(0); row += kRows) {
    const int64_t count = std::min(kRows, source.size(0) - row);
    target.narrow(0, row, count).add_(function(source.narrow(0, row, count)));
  }
}

}  // namespace linserve
