#include "attention/linear/efficient_attention.h"

#include <algorithm>
#include <limits>

#include "attention/rows/aten.h"
#include "attention/rows/attention_rows.h"
#include "attention/rows/product.h"

namespace linserve {
namespace {

// Within a block weights are relative to its largest key: those of the first rows must not vanish.
constexpr double kLargestGrowth = 60;
constexpr double kSmallestSum = 1e-30;  // less than exp(-60): only of no keys at all

// Holds some rows of the keys with their values; hidden keys are the lowest.
struct KeyRows {
  KeyRows(const at::Tensor& key, const at::Tensor& value, const at::Tensor& whole_mask, int64_t row,
          int64_t count)
      : mask(MaskRows(whole_mask, row, count)),
        keys(Hidden(SumRows(key, row, count), mask, kLowestKey)),
        values(SumRows(value, row, count)) {}

  at::Tensor mask, keys, values;
};

void Prepare(EfficientState& state, const at::Tensor& key, const at::Tensor& value) {
  if (state.largest.defined()) return;
  std::vector<int64_t> shape = key.sizes().vec();
  const int64_t features = shape.back();
  shape[shape.size() - 2] = 1;
  state.largest = at::full(shape, kLowestKey, key.options().dtype(SumType(key)));
  state.weights = at::zeros_like(state.largest);
  shape[shape.size() - 2] = features;
  shape.back() = value.size(-1);
  state.values = at::zeros(shape, state.largest.options());
}

// Makes the state's weights relative to `largest`, which is at least the state's own.
void Rescale(EfficientState& state, const at::Tensor& largest) {
  const at::Tensor factor = (state.largest - largest).exp_();
  state.weights.mul_(factor);
  state.values.mul_(factor.transpose(-2, -1));
  state.largest.copy_(largest);
}

at::Tensor LargestWith(const EfficientState& state, const KeyRows& rows) {
  return at::maximum(state.largest, rows.keys.amax(-2, /*keepdim=*/true));
}

at::Tensor Weights(const KeyRows& rows, const at::Tensor& largest) {
  return Hidden((rows.keys - largest).exp_(), rows.mask, 0);
}

void Add(EfficientState& state, const at::Tensor& weights, const at::Tensor& values) {
  state.weights.add_(weights.sum(-2, /*keepdim=*/true));
  AddProducts(state.values, weights, values);
}

// Attends for a few rows, each of which sees the state's keys and those of the rows up to its own.
void AttendCausal(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                  const at::Tensor& mask, int64_t row, int64_t count, EfficientState& state,
                  at::Tensor& result) {
  const KeyRows rows(key, value, mask, row, count);
  const at::Tensor largest = LargestWith(state, rows);
  const at::Tensor first = at::maximum(state.largest, rows.keys.narrow(-2, 0, 1));
  if (count > 1 && (largest - first).max().item<double>() > kLargestGrowth) {
    const int64_t half = count / 2;
    AttendCausal(query, key, value, mask, row, half, state, result);
    AttendCausal(query, key, value, mask, row + half, count - half, state, result);
    return;
  }
  Rescale(state, largest);
  const at::Tensor weights = Weights(rows, largest);
  // Each query's softmax over the keys divides by these, feature by feature.
  const at::Tensor sums = (weights.cumsum(-2) + state.weights).clamp_min_(kSmallestSum);
  const at::Tensor queries = at::softmax(SumRows(query, row, count), -1).div_(sums);
  const at::Tensor scores = Product(queries, weights.transpose(-2, -1)).tril_();
  Store(result.narrow(-2, row, count),
        Product(scores, rows.values) + Product(queries, state.values));
  Add(state, weights, rows.values);
}

void AddKeys(const at::Tensor& key, const at::Tensor& value, const at::Tensor& mask,
             EfficientState& state) {
  Prepare(state, key, value);
  ForReadSlices(key, [&](int64_t row, int64_t count) {
    const KeyRows rows(key, value, mask, row, count);
    Rescale(state, LargestWith(state, rows));
    Add(state, Weights(rows, state.largest), rows.values);
  });
}

at::Tensor AttendToAdded(const at::Tensor& query, const EfficientState& state) {
  const at::Tensor sums = state.weights.clamp_min(kSmallestSum);
  const at::Tensor context = state.values / sums.transpose(-2, -1);
  at::Tensor result = EmptyResult(query, context);
  ForReadSlices(query, [&](int64_t row, int64_t count) {
    Store(result.narrow(-2, row, count),
          Product(at::softmax(SumRows(query, row, count), -1), context));
  });
  return result;
}

}  // namespace

at::Tensor EfficientAttention(const at::Tensor& query, const at::Tensor& key,
                              const at::Tensor& value, const Visible& visible) {
  EfficientState state;
  if (visible.causal) return ContinueEfficientAttention(query, key, value, visible.mask, state);
  AddKeys(key, value, visible.mask, state);
  return AttendToAdded(query, state);
}

at::Tensor ContinueEfficientAttention(const at::Tensor& query, const at::Tensor& key,
                                      const at::Tensor& value, const at::Tensor& mask,
                                      EfficientState& state) {
  Prepare(state, key, value);
  at::Tensor result = EmptyResult(query, value);
  for (int64_t row = 0; row < query.size(-2); row += kWeighedRows) {
    const int64_t count = std::min(kWeighedRows, query.size(-2) - row);
    AttendCausal(query, key, value, mask, row, count, state, result);
  }
  return result;
}

}  // namespace linserve
