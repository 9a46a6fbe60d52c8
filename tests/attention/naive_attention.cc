#include "attention/naive_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "attention/rows/aten.h"

namespace linserve {
namespace {

// Holds the numbers of one head.
struct Head {
  std::vector<std::vector<double>> query, key, value;
  std::vector<bool> mask;
  bool causal = false;

  bool Sees(size_t i, size_t j) const { return mask[j] && (!causal || j <= i); }
};

using Rows = std::vector<std::vector<double>>;

Rows ToRows(const at::Tensor& matrix) {
  const at::Tensor wide = matrix.to(at::kDouble).contiguous();
  const auto* numbers = wide.const_data_ptr<double>();
  Rows rows(static_cast<size_t>(wide.size(0)));
  for (auto& row : rows) {
    row.assign(numbers, numbers + wide.size(1));
    numbers += wide.size(1);
  }
  return rows;
}

double Dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t f = 0; f < a.size(); ++f) sum += a[f] * b[f];
  return sum;
}

// Applies `function` to every head.
at::Tensor ByHead(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                  const Visible& visible, const std::function<Rows(const Head&)>& function) {
  const int64_t heads = query.numel() / query.size(-1) / query.size(-2);
  std::vector<int64_t> shape = query.sizes().vec();
  shape.back() = value.size(-1);
  std::vector<int64_t> mask_shape = key.sizes().vec();
  mask_shape.pop_back();
  const at::Tensor mask = visible.mask.defined() ? visible.mask : at::ones({1}, at::kBool);
  const at::Tensor masks = mask.expand(mask_shape).reshape({heads, key.size(-2)});
  at::Tensor result = at::empty({heads, query.size(-2), value.size(-1)}, at::kDouble);
  for (int64_t h = 0; h < heads; ++h) {
    Head head{ToRows(query.reshape({heads, query.size(-2), -1})[h]),
              ToRows(key.reshape({heads, key.size(-2), -1})[h]),
              ToRows(value.reshape({heads, key.size(-2), -1})[h]),
              {},
              visible.causal};
    for (int64_t j = 0; j < key.size(-2); ++j) head.mask.push_back(masks[h][j].item<bool>());
    const Rows rows = function(head);
    for (size_t i = 0; i < rows.size(); ++i) {
      result[h][static_cast<int64_t>(i)].copy_(at::tensor(rows[i], at::kDouble));
    }
  }
  return result.reshape(shape);
}

// Sums of values by weights; without any visible key zeros.
Rows Weighted(const Head& head, bool divide,
              const std::function<double(const std::vector<double>&, const std::vector<double>&)>&
                  weight_of) {
  Rows result;
  for (size_t i = 0; i < head.query.size(); ++i) {
    std::vector<double> sum(head.value[0].size(), 0);
    double weights = 0;
    for (size_t j = 0; j < head.key.size(); ++j) {
      if (!head.Sees(i, j)) continue;
      const double weight = weight_of(head.query[i], head.key[j]);
      weights += weight;
      for (size_t f = 0; f < sum.size(); ++f) sum[f] += weight * head.value[j][f];
    }
    for (double& value : sum) value /= divide && weights != 0 ? weights : 1;
    result.push_back(sum);
  }
  return result;
}

double ByElu(const std::vector<double>& query, const std::vector<double>& key) {
  const auto phi = [](double x) { return x > 0 ? x + 1 : std::exp(x); };
  double sum = 0;
  for (size_t f = 0; f < query.size(); ++f) sum += phi(query[f]) * phi(key[f]);
  return sum;
}

// Returns the softmax over positions of feature f, as query i sees the keys.
std::vector<double> KeySoftmax(const Head& head, size_t i, size_t f) {
  double largest = -std::numeric_limits<double>::infinity();
  for (size_t j = 0; j < head.key.size(); ++j) {
    if (head.Sees(i, j)) largest = std::max(largest, head.key[j][f]);
  }
  std::vector<double> weights(head.key.size(), 0);
  double sum = 0;
  for (size_t j = 0; j < head.key.size(); ++j) {
    if (head.Sees(i, j)) weights[j] = std::exp(head.key[j][f] - largest);
    sum += weights[j];
  }
  for (double& weight : weights) weight /= sum != 0 ? sum : 1;
  return weights;
}

Rows Efficient(const Head& head) {
  Rows result;
  for (size_t i = 0; i < head.query.size(); ++i) {
    const std::vector<double>& query = head.query[i];
    const double largest = *std::max_element(query.begin(), query.end());
    double sum = 0;
    for (double x : query) sum += std::exp(x - largest);
    std::vector<double> row(head.value[0].size(), 0);
    for (size_t f = 0; f < query.size(); ++f) {
      const std::vector<double> weights = KeySoftmax(head, i, f);
      const double share = std::exp(query[f] - largest) / sum;
      for (size_t j = 0; j < weights.size(); ++j) {
        for (size_t e = 0; e < row.size(); ++e) row[e] += share * weights[j] * head.value[j][e];
      }
    }
    result.push_back(row);
  }
  return result;
}

}  // namespace

at::Tensor NaiveSoftmax(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                        const Visible& visible) {
  return ByHead(query, key, value, visible, [](const Head& head) {
    return Weighted(head, true, [](const auto& q, const auto& k) {
      return std::exp(Dot(q, k) / std::sqrt(static_cast<double>(q.size())));
    });
  });
}

at::Tensor NaiveEfficient(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                          const Visible& visible) {
  return ByHead(query, key, value, visible, Efficient);
}

at::Tensor NaiveKernel(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                       const Visible& visible) {
  return ByHead(query, key, value, visible,
                [](const Head& head) { return Weighted(head, false, ByElu); });
}

at::Tensor NaiveKernelNormalized(const at::Tensor& query, const at::Tensor& key,
                                 const at::Tensor& value, const Visible& visible) {
  return ByHead(query, key, value, visible,
                [](const Head& head) { return Weighted(head, true, ByElu); });
}

at::Tensor NaiveTaylor(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                       const Visible& visible) {
  return ByHead(query, key, value, visible, [](const Head& head) {
    return Weighted(head, true, [](const auto& q, const auto& k) {
      return 1 + Dot(q, k) / (std::sqrt(Dot(q, q)) * std::sqrt(Dot(k, k)));
    });
  });
}

}  // namespace linserve
