#include "models/attention_method.h"

#include "attention/aten.h"
#include "attention/efficient_attention.h"
#include "attention/kernel_attention.h"
#include "attention/softmax_attention.h"
#include "attention/taylor_attention.h"

namespace linserve {
namespace {

// Pairs of a query and a key that it sees.
double Pairs(const AttentionSizes& sizes) {
  const auto queries = static_cast<double>(sizes.queries);
  return sizes.causal ? queries * (queries + 1) / 2 : queries * static_cast<double>(sizes.keys);
}

}  // namespace

at::Tensor Attend(AttentionMethod method, const at::Tensor& query, const at::Tensor& key,
                  const at::Tensor& value, const Visible& visible) {
  switch (method) {
    case AttentionMethod::kSoftmax:
      return SoftmaxAttention(query, key, value, visible);
    case AttentionMethod::kEfficient:
      return EfficientAttention(query, key, value, visible);
    case AttentionMethod::kKernel:
      return KernelAttention(query, key, value, visible, /*normalize=*/false);
    case AttentionMethod::kKernelNormalized:
      return KernelAttention(query, key, value, visible, /*normalize=*/true);
    case AttentionMethod::kTaylor:
      return TaylorAttention(query, key, value, visible);
  }
  return {};
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
      // Softmax subtracts the largest, sums and divides.
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
