#include "attention/linear/feature_attention.h"

#include <algorithm>

#include "attention/rows/aten.h"
#include "attention/rows/attention_rows.h"
#include "attention/rows/product.h"

namespace linserve {
namespace {

struct Sums {
  at::Tensor values;   // [..., rows, e]
  at::Tensor weights;  // [..., rows, 1]
};

void Add(FeatureState& state, const at::Tensor& keys, const at::Tensor& values) {
  const at::Tensor turned = keys.transpose(-2, -1);
  const at::Tensor weights = turned.sum(-1, /*keepdim=*/true);
  if (!state.values.defined()) {
    state = {Product(turned, values), weights};
    return;
  }
  AddProducts(state.values, keys, values);
  state.weights.add_(weights);
}

Sums Read(const FeatureState& state, const at::Tensor& queries) {
  return {Product(queries, state.values), Product(queries, state.weights)};
}

at::Tensor Finish(const Sums& sums, const FeatureForm& form) {
  if (!form.floor && form.added == 0) return sums.values;
  const at::Tensor divisors = form.added == 0 ? sums.weights : sums.weights + form.added;
  return sums.values / (form.floor ? divisors.clamp_min(*form.floor) : divisors);
}

at::Tensor Keys(const at::Tensor& key, const at::Tensor& mask, const FeatureForm& form, int64_t row,
                int64_t count) {
  return Hidden(form.keys(SumRows(key, row, count)), MaskRows(mask, row, count), 0);
}

}  // namespace

at::Tensor FeatureAttention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                            const Visible& visible, const FeatureForm& form) {
  FeatureState state;
  if (visible.causal) {
    return ContinueFeatureAttention(query, key, value, visible.mask, form, state);
  }
  AddKeys(key, value, visible.mask, form, state);
  return AttendToAdded(query, state, form);
}

void AddKeys(const at::Tensor& key, const at::Tensor& value, const at::Tensor& mask,
             const FeatureForm& form, FeatureState& state) {
  ForReadSlices(key, [&](int64_t row, int64_t count) {
    Add(state, Keys(key, mask, form, row, count), SumRows(value, row, count));
  });
}

at::Tensor AttendToAdded(const at::Tensor& query, const FeatureState& state,
                         const FeatureForm& form) {
  at::Tensor result = EmptyResult(query, state.values);
  ForReadSlices(query, [&](int64_t row, int64_t count) {
    const Sums sums = Read(state, form.queries(SumRows(query, row, count)));
    Store(result.narrow(-2, row, count), Finish(sums, form));
  });
  return result;
}

at::Tensor ContinueFeatureAttention(const at::Tensor& query, const at::Tensor& key,
                                    const at::Tensor& value, const at::Tensor& mask,
                                    const FeatureForm& form, FeatureState& state) {
  at::Tensor result = EmptyResult(query, value);
  for (int64_t row = 0; row < query.size(-2); row += kWeighedRows) {
    const int64_t count = std::min(kWeighedRows, query.size(-2) - row);
    const at::Tensor queries = form.queries(SumRows(query, row, count));
    const at::Tensor keys = Keys(key, mask, form, row, count);
    const at::Tensor values = SumRows(value, row, count);
    const at::Tensor weights = Product(queries, keys.transpose(-2, -1)).tril_();
    Sums sums = {Product(weights, values), weights.sum(-1, /*keepdim=*/true)};
    if (state.values.defined()) {
      const Sums before = Read(state, queries);
      sums.values += before.values;
      sums.weights += before.weights;
    }
    Store(result.narrow(-2, row, count), Finish(sums, form));
    Add(state, keys, values);
  }
  return result;
}

}  // namespace linserve
