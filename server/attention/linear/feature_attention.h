#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>

#include "attention/rows/visible.h"

namespace linserve {

// Says what makes weights of queries and keys: weight_ij = φ(query_i) · φ(key_j).
struct FeatureForm {
  using Features = std::function<at::Tensor(const at::Tensor& rows)>;

  Features queries;  // φ of them: [..., rows, d] -> [..., rows, features]
  Features keys;
  // The sum of values is divided by the sum of weights plus `added`, or by `floor` where that is
  // less. With neither it is not divided.
  std::optional<double> floor{};
  double added = 0;
};

// Holds all that a query needs to know of the keys before it, whatever their number, in F32.
// Without any keys both are undefined or zero. What is defined is updated in place.
struct FeatureState {
  at::Tensor values;   // [..., features, e]: sum of φ(key_j)ᵀ · value_j
  at::Tensor weights;  // [..., features, 1]: sum of φ(key_j)
};

// Computes attention whose weights are products of features, so that the sums over the keys are
// taken once:
//   y_i = sum over visible j of weight_ij · value_j [/ sum over visible j of weight_ij]
// query [..., n, d], key [..., m, d], value [..., m, e] -> [..., n, e], summed in F32. A query that
// sees no key gives zeros. O((n + m) · features · e), scratch bounded for any length. Causal: a
// block of keys is weighed key by key, those before it through the state; O(1) more a row.
// Source: Katharopoulos et al. 2020 (arXiv:2006.16236).
at::Tensor FeatureAttention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                            const Visible& visible, const FeatureForm& form);

// These two compute it where keys come slice by slice, none of it causal: first AddKeys() takes all
// keys, then AttendToAdded() the queries.
void AddKeys(const at::Tensor& key, const at::Tensor& value, const at::Tensor& mask,
             const FeatureForm& form, FeatureState& state);
at::Tensor AttendToAdded(const at::Tensor& query, const FeatureState& state,
                         const FeatureForm& form);

// Computes the causal attention of further rows of a sequence: `state` is of all rows before them,
// and then of these, too. mask [..., n] or undefined.
at::Tensor ContinueFeatureAttention(const at::Tensor& query, const at::Tensor& key,
                                    const at::Tensor& value, const at::Tensor& mask,
                                    const FeatureForm& form, FeatureState& state);

}  // namespace linserve
