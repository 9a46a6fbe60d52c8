#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "attention/linear/efficient_attention.h"
#include "attention/linear/feature_attention.h"
#include "attention/rows/visible.h"
#include "models/sessions/session_plan.h"

namespace linserve {

// Names the attention methods that are functions of queries, keys and values alone.
enum class AttentionMethod : uint8_t {
  kSoftmax,
  kEfficient,
  kKernel,            // elu + 1, without a denominator
  kKernelNormalized,  // and with it
  kTaylor,
};

// Says whether it is kernel attention with the features elu + 1.
constexpr bool IsKernel(AttentionMethod method) {
  return method == AttentionMethod::kKernel || method == AttentionMethod::kKernelNormalized;
}

// Takes query [..., n, d], key [..., m, d] and value [..., m, e], and gives [..., n, e].
at::Tensor Attend(AttentionMethod method, const at::Tensor& query, const at::Tensor& key,
                  const at::Tensor& value, const Visible& visible);

// Computes a causal linear method over a sequence whose rows come chunk by chunk.
class RunningAttention {
 public:
  // Goes on from where `state`, one [sequences, ...] of each of StateOf(), was left, and updates it
  // in place. REQUIRES: IsLinear(method).
  RunningAttention(AttentionMethod method, const std::vector<at::Tensor>& state);

  // Says what is kept of the keys of `heads` heads.
  static std::vector<StateSlot> StateOf(AttentionMethod method, int64_t heads, int64_t width,
                                        int64_t value_width);

  // Attends for the next rows of causal attention, which reads them in.
  at::Tensor Continue(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value);

 private:
  std::optional<FeatureForm> form_;  // nullopt: efficient attention
  FeatureState features_;
  EfficientState efficient_;
};

inline bool IsLinear(AttentionMethod method) { return method != AttentionMethod::kSoftmax; }

// Says what one head is computed from.
struct AttentionSizes {
  int64_t queries = 0;
  int64_t keys = 0;
  int64_t width = 0;  // of queries and keys
  int64_t value_width = 0;
  bool causal = false;
};

// Counts additions and multiplications, without those inside exponentials: softmax's by the pairs
// that see each other, all others' by their recurrence (a state that takes in a key, and is read by
// a query).
double AttentionFlops(AttentionMethod method, const AttentionSizes& sizes);

}  // namespace linserve
