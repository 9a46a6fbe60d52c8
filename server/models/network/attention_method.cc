#include "models/network/attention_method.h"

#include "attention/linear/kernel_attention.h"
#include "attention/linear/taylor_attention.h"
#include "attention/linformer/softmax_attention.h"
#include "attention/rows/aten.h"

namespace linserve {
namespace {

// Counts the pairs of a query and a key that it sees.
double Pairs(const AttentionSizes& sizes) {
  const auto queries = static_cast<double>(sizes.queries);
  return sizes.causal ? queries * (queries + 1) / 2 : queries * static_cast<double>(sizes.keys);
}

std::optional<FeatureForm> FormOf(AttentionMethod method) {
  switch (method) {
    case AttentionMethod::kKernel:
      return KernelForm(/*normalize=*/false);
    case AttentionMethod::kKernelNormalized:
      return KernelForm(/*normalize=*/true);
    case AttentionMethod::kTaylor:
      return TaylorForm();
    case AttentionMethod::kSoftmax:
    case AttentionMethod::kEfficient:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

RunningAttention::RunningAttention(AttentionMethod method, const std::vector<at::Tensor>& state)
    : form_(FormOf(method)) {
  if (form_) {
    features_ = {state[0], state[1]};
  } else {
    efficient_ = {state[0], state[1], state[2]};
  }
}

std::vector<StateSlot> RunningAttention::StateOf(AttentionMethod method, int64_t heads,
                                                 int64_t width, int64_t value_width) {
  if (method == AttentionMethod::kEfficient) {
    return {{{heads, 1, width}, kLowestKey}, {{heads, 1, width}}, {{heads, width, value_width}}};
  }
  const int64_t features = method == AttentionMethod::kTaylor ? width + 1 : width;
  return {{{heads, features, value_width}}, {{heads, features, 1}}};
}

at::Tensor RunningAttention::Continue(const at::Tensor& query, const at::Tensor& key,
                                      const at::Tensor& value) {
  if (form_) return ContinueFeatureAttention(query, key, value, {}, *form_, features_);
  return ContinueEfficientAttention(query, key, value, {}, efficient_);
}

at::Tensor Attend(AttentionMethod method, const at::Tensor& query, const at::Tensor& key,
                  const at::Tensor& value, const Visible& visible) {
  if (const auto form = FormOf(method)) return FeatureAttention(query, key, value, visible, *form);
  if (method == AttentionMethod::kSoftmax) return SoftmaxAttention(query, key, value, visible);
  return EfficientAttention(query, key, value, visible);
}

double AttentionFlops(AttentionMethod method, const AttentionSizes& sizes) {
  const auto queries = static_cast<double>(sizes.queries);
  const auto keys = static_cast<double>(sizes.keys);
  const auto width = static_cast<double>(sizes.width);
  const auto value_width = static_cast<double>(sizes.value_width);
  const double state = 2 * width * value_width;
  switch (method) {
    case AttentionMethod::kSoftmax:
      return Pairs(sizes) * 2 * (width + value_width);
    case AttentionMethod::kEfficient:
      // Softmax takes three operations for each number: it subtracts the largest, sums and divides.
      return (queries + keys) * (state + 3 * width);
    case AttentionMethod::kKernel:
      return (queries + keys) * (state + width);
    case AttentionMethod::kKernelNormalized:
      return (queries + keys) * (state + width) + keys * width +
             queries * (2 * width + value_width);
    case AttentionMethod::kTaylor:
      // Lengths of rows and their division, the state and the sum of all values, the denominator.
      return (queries + keys) * (state + 3 * width + value_width) + keys * width +
             queries * (2 * width + value_width);
  }
  return 0;
}

}  // namespace linserve
