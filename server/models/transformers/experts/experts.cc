#include "models/transformers/experts/experts.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "attention/products/block_product.h"
#include "attention/products/kernel_rows.h"
#include "attention/rows/aten.h"

namespace linserve::transformers {

Experts::Experts(int64_t width, int64_t inner, const ExpertOptions& options, Activation activation)
    : width_(width),
      inner_(inner),
      options_(options),
      activation_(activation),
      router_(width, options.count, /*biased=*/false) {}

void Experts::Declare(const Scope& scope) {
  router_.Declare(scope / "router" / "layer", /*exact=*/true);
  const Scope experts = scope / "experts";
  for (at::Tensor* tensor : {&w1_, &w2_}) {
    const Scope products = experts / "mlp";
    products.Declare(tensor == &w1_ ? "w1" : "w2", *tensor, {options_.count * inner_, width_},
                     Init::kUniform);
    products.Packs(*tensor);
  }
  experts.Declare("bias", bias_, {width_}, Init::kZeros);
  experts.AfterLoading([this](DType products) { Pack(products); });
}

double Experts::Flops() const {
  return static_cast<double>(router_.Flops() + options_.chosen * 4 * width_ * inner_);
}

void Experts::Pack(DType products) {
  std::vector<PackedWeight> first;
  std::vector<PackedWeight> second;
  for (int64_t expert = 0; expert < options_.count; ++expert) {
    const auto own = [&](const at::Tensor& all) { return all.narrow(0, expert * inner_, inner_); };
    first.emplace_back(own(w1_), products);
    second.emplace_back(own(w2_).t().contiguous(), products);
    if (!first.back() || !second.back()) return;
  }
  first_ = std::move(first);
  second_ = std::move(second);
  w1_.reset();
  w2_.reset();
}

int64_t Experts::ScratchElements() const {
  return kBlockRows * (OddLines(options_.count) + OddLines(inner_) + 3 * width_);
}

void Experts::Add(const RowBlock& target, const RowBlock& rows, int64_t count,
                  float* scratch) const {
  const RowBlock inner{scratch, OddLines(inner_)};
  const RowBlock read{inner.Rows(kBlockRows).data, width_};
  const RowBlock made{read.Rows(kBlockRows).data, width_};
  const RowBlock sum{made.Rows(kBlockRows).data, width_};
  const RowBlock scores{sum.Rows(kBlockRows).data, OddLines(options_.count)};
  router_.Set(scores, rows, count);
  const auto chosen = Choose(scores, count);
  std::fill_n(sum.data, count * width_, 0.0F);
  for (size_t expert = 0; expert < chosen.size(); ++expert) {
    const std::vector<Chosen>& own = chosen[expert];
    if (own.empty()) continue;
    const int64_t some = std::ssize(own);
    for (int64_t i = 0; i < some; ++i) {
      std::copy_n(rows.Rows(own[static_cast<size_t>(i)].row).data, width_, read.Rows(i).data);
    }
    const auto activate = [&](int64_t row, int64_t number) {
      BiasActivate(activation_, inner.Rows(row), number, inner_, nullptr, second_[expert].rounds());
    };
    first_[expert].Multiply(read, some, inner, /*add=*/false);
    second_[expert].Multiply(inner, some, made, /*add=*/false, nullptr, activate);
    for (int64_t i = 0; i < some; ++i) {
      const auto [row, share] = own[static_cast<size_t>(i)];
      const RowBlock result = made.Rows(i);
      ScaleRows(result, 1, width_, &share);
      AddRows(sum.Rows(row), 1, width_, result);
    }
  }
  AddRows(target, count, width_, sum);
  AddBias(target, count, width_, bias_.const_data_ptr<float>());
}

std::vector<std::vector<Experts::Chosen>> Experts::Choose(const RowBlock& scores,
                                                          int64_t count) const {
  std::vector<std::vector<Chosen>> chosen(static_cast<size_t>(options_.count));
  std::vector<int64_t> order(chosen.size());
  for (int64_t row = 0; row < count; ++row) {
    const float* own = scores.Rows(row).data;
    std::iota(order.begin(), order.end(), 0);
    const auto is_higher = [own](int64_t a, int64_t b) { return own[a] > own[b]; };
    std::partial_sort(order.begin(), order.begin() + options_.chosen, order.end(), is_higher);
    const float highest = own[order[0]];
    double all = 0;
    for (int64_t i = 0; i < options_.count; ++i) all += std::exp(own[i] - highest);
    for (int64_t i = 0; i < options_.chosen; ++i) {
      const int64_t expert = order[static_cast<size_t>(i)];
      const double share = std::exp(own[expert] - highest) / all;
      chosen[static_cast<size_t>(expert)].push_back({row, static_cast<float>(share)});
    }
  }
  return chosen;
}

void Experts::AddWithoutBias(const at::Tensor& target, const at::Tensor& rows) const {
  AddByRows(target, rows, [this](const at::Tensor& some) { return Sum(some); });
}

// Takes all rows through all experts, so that a device need not be waited for to know which rows go
// where; those of others count nothing.
at::Tensor Experts::Sum(const at::Tensor& rows) const {
  const at::Tensor shares = at::softmax(router_(rows).to(at::kFloat), -1);
  const auto [highest, experts] = at::topk(shares, options_.chosen, -1);
  const at::Tensor counted = at::zeros_like(shares).scatter_(-1, experts, highest).to(rows.dtype());
  at::Tensor sum = at::zeros_like(rows);
  for (int64_t expert = 0; expert < options_.count; ++expert) {
    const int64_t first = expert * inner_;
    at::Tensor inner = at::linear(rows, w1_.narrow(0, first, inner_));
    Activate(activation_, inner);
    sum.addmm_(inner.mul_(counted.narrow(-1, expert, 1)), w2_.narrow(0, first, inner_));
  }
  return sum;
}

}  // namespace linserve::transformers
