#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

#include "models/parameters.h"

namespace linserve {

// The modules that all families share. Rows are [rows, width]; member names are checkpoint names.

// y = x·weightᵀ + bias (torch.nn.Linear).
struct Linear {
  Linear(int64_t in, int64_t out, bool biased = true)
      : inputs(in), outputs(out), with_bias(biased) {}

  void Declare(const Scope& scope);
  at::Tensor operator()(const at::Tensor& x) const;
  int64_t Flops() const { return 2 * inputs * outputs; }  // a row

  int64_t inputs;
  int64_t outputs;
  bool with_bias;
  at::Tensor weight;  // [outputs, inputs]
  at::Tensor bias;    // [outputs]
};

// Over the last axis, biased variance, eps 1e-5 (torch.nn.LayerNorm).
struct LayerNorm {
  explicit LayerNorm(int64_t size) : width(size) {}

  void Declare(const Scope& scope);
  at::Tensor operator()(const at::Tensor& x) const;

  int64_t width;
  at::Tensor weight;
  at::Tensor bias;
};

// w2(GELU(w1(x))) with the exact GELU.
struct FeedForward {
  FeedForward(int64_t width, int64_t inner) : w1(width, inner), w2(inner, width) {}

  void Declare(const Scope& scope);
  at::Tensor operator()(const at::Tensor& x) const;
  int64_t Flops() const { return w1.Flops() + w2.Flops(); }

  Linear w1;
  Linear w2;
};

// target += function(source), in pieces of rows, so that what the function holds in between stays
// bounded however many rows there are. Source and target may be the same tensor.
void AddByRows(at::Tensor& target, const at::Tensor& source,
               const std::function<at::Tensor(const at::Tensor&)>& function);

}  // namespace linserve
