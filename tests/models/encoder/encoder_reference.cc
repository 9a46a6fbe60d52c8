#include "models/encoder/encoder_reference.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>

#include "core/files/safetensors.h"

namespace linserve {
namespace {

using Rows = EncoderReference::Rows;

Rows Zeros(size_t rows, size_t width) { return Rows(rows, std::vector<double>(width, 0)); }

double Dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t f = 0; f < a.size(); ++f) sum += a[f] * b[f];
  return sum;
}

// Returns the angle of feature pair j at a position.
double Angle(size_t position, size_t j, size_t width) {
  return static_cast<double>(position) *
         std::pow(10000.0, -2.0 * static_cast<double>(j) / static_cast<double>(width));
}

void Rotate(Rows& rows) {
  for (size_t t = 0; t < rows.size(); ++t) {
    std::vector<double>& row = rows[t];
    for (size_t j = 0; 2 * j < row.size(); ++j) {
      const double angle = Angle(t, j, row.size());
      const double first = row[2 * j] * std::cos(angle) - row[2 * j + 1] * std::sin(angle);
      row[2 * j + 1] = row[2 * j + 1] * std::cos(angle) + row[2 * j] * std::sin(angle);
      row[2 * j] = first;
    }
  }
}

// Holds what one head attends with, and who sees whom.
struct Head {
  Rows q, k, v;
  std::vector<bool> mask;
  bool causal = false;

  bool Sees(size_t i, size_t j) const { return mask[j] && (!causal || j <= i); }
};

template <typename Weight>
Rows Weighted(const Head& head, bool divide, const Weight& weight_of) {
  Rows y = Zeros(head.q.size(), head.v[0].size());
  for (size_t i = 0; i < y.size(); ++i) {
    double total = 0;
    for (size_t j = 0; j < head.k.size(); ++j) {
      if (!head.Sees(i, j)) continue;
      const double weight = weight_of(head.q[i], head.k[j]);
      total += weight;
      for (size_t f = 0; f < y[i].size(); ++f) y[i][f] += weight * head.v[j][f];
    }
    if (divide && total != 0) {
      for (double& value : y[i]) value /= total;
    }
  }
  return y;
}

Rows Efficient(const Head& head) {
  Rows y = Zeros(head.q.size(), head.v[0].size());
  for (size_t i = 0; i < y.size(); ++i) {
    double features = 0;
    for (double q : head.q[i]) features += std::exp(q);
    for (size_t f = 0; f < head.q[i].size(); ++f) {
      double total = 0;
      for (size_t j = 0; j < head.k.size(); ++j) {
        if (head.Sees(i, j)) total += std::exp(head.k[j][f]);
      }
      for (size_t j = 0; j < head.k.size(); ++j) {
        if (!head.Sees(i, j)) continue;
        const double weight = std::exp(head.q[i][f]) / features * std::exp(head.k[j][f]) / total;
        for (size_t e = 0; e < y[i].size(); ++e) y[i][e] += weight * head.v[j][e];
      }
    }
  }
  return y;
}

double BySoftmax(const std::vector<double>& q, const std::vector<double>& k) {
  return std::exp(Dot(q, k) / std::sqrt(static_cast<double>(q.size())));
}

double ByElu(const std::vector<double>& q, const std::vector<double>& k) {
  const auto phi = [](double x) { return (x > 0 ? x : std::expm1(x)) + 1; };
  double sum = 0;
  for (size_t f = 0; f < q.size(); ++f) sum += phi(q[f]) * phi(k[f]);
  return sum;
}

double ByTaylor(const std::vector<double>& q, const std::vector<double>& k) {
  return 1 + Dot(q, k) / std::sqrt(Dot(q, q) * Dot(k, k));
}

// projection [seq_len, slots]: slot s is the sum of its column's multiples of the rows.
Rows Projected(const Rows& rows, const Rows& projection, const std::vector<bool>& mask) {
  Rows slots = Zeros(projection[0].size(), rows[0].size());
  for (size_t s = 0; s < slots.size(); ++s) {
    for (size_t t = 0; t < rows.size(); ++t) {
      if (!mask[t]) continue;
      for (size_t f = 0; f < rows[t].size(); ++f) slots[s][f] += projection[t][s] * rows[t][f];
    }
  }
  return slots;
}

Rows HeadOf(const Rows& rows, size_t head, size_t width) {
  Rows part;
  for (const auto& row : rows) {
    const auto begin = row.begin() + static_cast<std::ptrdiff_t>(head * width);
    part.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(width));
  }
  return part;
}

}  // namespace

EncoderReference::EncoderReference(const std::string& directory) {
  std::ifstream config(directory + "/config.json");
  params_ = nlohmann::json::parse(config).at("params");
  tensors_ = ReadSafetensors(directory + "/model.safetensors")->tensors;
}

std::vector<double> EncoderReference::Vector(const std::string& name) const {
  const Tensor& tensor = tensors_.at(name);
  return {tensor.data<float>(), tensor.data<float>() + tensor.elements()};
}

Rows EncoderReference::Matrix(const std::string& name) const {
  const Tensor& tensor = tensors_.at(name);
  const std::vector<double> all = Vector(name);
  const auto width = static_cast<size_t>(tensor.shape()[1]);
  Rows rows;
  for (size_t at = 0; at < all.size(); at += width) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(at);
    rows.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(width));
  }
  return rows;
}

Rows EncoderReference::Linear(const Rows& x, const std::string& name) const {
  const Rows weight = Matrix(name + ".weight");
  std::vector<double> bias(weight.size(), 0);
  if (tensors_.contains(name + ".bias")) bias = Vector(name + ".bias");
  Rows y = Zeros(x.size(), weight.size());
  for (size_t i = 0; i < x.size(); ++i) {
    for (size_t o = 0; o < weight.size(); ++o) y[i][o] = Dot(x[i], weight[o]) + bias[o];
  }
  return y;
}

Rows EncoderReference::Norm(const Rows& x, const std::string& name) const {
  const std::vector<double> weight = Vector(name + ".weight");
  const std::vector<double> bias = Vector(name + ".bias");
  Rows y = x;
  for (auto& row : y) {
    const auto width = static_cast<double>(row.size());
    double mean = 0;
    for (double value : row) mean += value / width;
    double variance = 0;
    for (double value : row) variance += (value - mean) * (value - mean) / width;
    for (size_t f = 0; f < row.size(); ++f) {
      row[f] = (row[f] - mean) / std::sqrt(variance + 1e-5) * weight[f] + bias[f];
    }
  }
  return y;
}

Rows EncoderReference::Embed(const Item& item) const {
  const Tensor& x = item.inputs.at("x");
  const auto width = params_.at("dim").get<size_t>();
  Rows rows = Zeros(static_cast<size_t>(x.shape()[0]), width);
  const std::string positions = params_.value("positions", "none");
  for (size_t t = 0; t < rows.size(); ++t) {
    for (size_t f = 0; f < width; ++f) {
      double& value = rows[t][f];
      value = params_.contains("num_tokens")
                  ? Matrix("token_emb.weight")[static_cast<size_t>(x.data<int64_t>()[t])][f]
                  : double{x.data<float>()[t * width + f]};
      if (positions == "learned") value += Matrix("pos_emb.weight")[t][f];
      if (positions != "sinusoidal") continue;
      const bool sine = f < width / 2;
      const double angle = Angle(t, sine ? f : f - width / 2, width);
      value += sine ? std::sin(angle) : std::cos(angle);
    }
  }
  return rows;
}

Rows EncoderReference::Attend(const Rows& x, const std::string& name,
                              const std::vector<bool>& mask) const {
  const std::string method = params_.at("attention");
  const Rows q = Linear(x, name + "to_q");
  const Rows k = Linear(x, name + "to_k");
  const Rows v = Linear(x, name + "to_v");
  const auto heads = params_.at("heads").get<size_t>();
  const size_t width = q[0].size() / heads;
  Rows joined(x.size());
  for (size_t h = 0; h < heads; ++h) {
    Head head{HeadOf(q, h, width), HeadOf(k, h, width), HeadOf(v, h, width), mask,
              params_.value("causal", false)};
    if (params_.value("positions", "none") == "rotary") {
      Rotate(head.q);
      Rotate(head.k);
    }
    Rows y;
    if (method == "linformer") {
      head.k = Projected(head.k, Matrix(name + "proj_k"), mask);
      head.v = Projected(head.v, Matrix(name + "proj_v"), mask);
      head.mask.assign(head.k.size(), true);
      y = Weighted(head, true, BySoftmax);
    } else if (method == "efficient") {
      y = Efficient(head);
    } else if (method == "elu") {
      y = Weighted(head, params_.value("normalize", true), ByElu);
    } else {
      y = Weighted(head, true, method == "taylor" ? ByTaylor : BySoftmax);
    }
    for (size_t i = 0; i < y.size(); ++i) {
      joined[i].insert(joined[i].end(), y[i].begin(), y[i].end());
    }
  }
  return Linear(joined, name + "to_out");
}

Rows EncoderReference::Compute(const Item& item) const {
  Rows x = Embed(item);
  std::vector<bool> mask(x.size(), true);
  if (item.inputs.contains("input_mask")) {
    const std::byte* bytes = item.inputs.at("input_mask").bytes();
    for (size_t t = 0; t < mask.size(); ++t) mask[t] = bytes[t] != std::byte{0};
  }
  const auto add = [&](const Rows& y) {
    for (size_t i = 0; i < x.size(); ++i) {
      for (size_t f = 0; f < x[i].size(); ++f) x[i][f] += y[i][f];
    }
  };
  for (int layer = 0; layer < params_.at("depth").get<int>(); ++layer) {
    const std::string name = "layers." + std::to_string(layer) + ".";
    add(Attend(Norm(x, name + "attn_norm"), name + "attn.", mask));
    Rows inner = Linear(Norm(x, name + "ff_norm"), name + "ff.w1");
    for (auto& row : inner) {
      for (double& value : row) value = value / 2 * (1 + std::erf(value / std::sqrt(2.0)));
    }
    add(Linear(inner, name + "ff.w2"));
  }
  return Norm(x, "norm");
}

double LargestDifference(const Tensor& tensor, const Rows& rows) {
  const Shape expected = {static_cast<int64_t>(rows.size()), static_cast<int64_t>(rows[0].size())};
  if (tensor.shape() != expected) return std::numeric_limits<double>::infinity();
  double largest = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t f = 0; f < rows[i].size(); ++f) {
      const double value = tensor.data<float>()[i * rows[i].size() + f];
      const double difference = std::abs(value - rows[i][f]);
      if (!(difference <= largest)) largest = difference;  // NaN is the largest
    }
  }
  return largest;
}

}  // namespace linserve
