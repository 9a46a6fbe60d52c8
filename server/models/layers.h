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

// GELU is the exact one.
enum class Activation : uint8_t { kGelu, kRelu };

// w2(activation(w1(x))), or with `gated` w2(activation(a) · b) where [a, b] = w1(x) (GLU).
struct FeedForward {
  FeedForward(int64_t width, int64_t inner) : FeedForward(width, inner, width, Activation::kGelu) {}
  FeedForward(int64_t in, int64_t inner, int64_t out, Activation function, bool with_gate = false)
      : w1(in, with_gate ? 2 * inner : inner),
        w2(inner, out),
        activation(function),
        gated(with_gate) {}

  // The packages have different names for its two layers.
  void Declare(const Scope& scope, const char* first = "w1", const char* second = "w2");
  at::Tensor operator()(const at::Tensor& x) const;
  int64_t Flops() const { return w1.Flops() + w2.Flops(); }

  Linear w1;
  Linear w2;
  Activation activation;
  bool gated;
};

// target += function(source), in pieces of rows, so that what the function holds in between stays
// bounded however many rows there are. Source and target may be the same tensor.
void AddByRows(at::Tensor& target, const at::Tensor& source,
               const std::function<at::Tensor(const at::Tensor&)>& function);

}  // namespace linserve
