#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "attention/rows/activation.h"
#include "models/network/packed_weight.h"
#include "models/network/parameters.h"

namespace linserve {

// These are the modules that all families share. Rows are [rows, width]; member names are
// checkpoint names.
//
// Those with packed weights (F32 on the CPU) have besides a function of a block of rows, by which
// a model can chain their steps while the block is in the cache.

// Computes y = x·weightᵀ + bias (torch.nn.Linear).
struct Linear {
  Linear(int64_t in, int64_t out, bool biased = true)
      : inputs(in), outputs(out), with_bias(biased) {}

  // If it is exact, its products on the CPU are of F32, whatever type the model computes in.
  void Declare(const Scope& scope, bool exact = false);
  // Declares a weight that stays as it is in the file.
  void DeclareUnpacked(const Scope& scope);
  // Declares one of logits of many words. It stays as it is in the file, or where the model's
  // products are rounded, and the CPU has kernels for it, is packed in BF16: that is half the
  // memory.
  void DeclareLogits(const Scope& scope);
  // Declares a weight that is packed later, by itself or as part of a layer that JoinParts() makes.
  void DeclarePart(const Scope& scope);
  // Lays the weight out for products with blocks of rows. It is called by what Declare() adds to
  // the scope.
  void Pack(DType products);
  at::Tensor operator()(const at::Tensor& x) const;
  // Adds y to the target.
  void AddTo(const at::Tensor& target, const at::Tensor& x) const;
  // Adds x·weightᵀ to the target by the product itself, which reads and writes the target once.
  // REQUIRES: not packed.
  void AddProduct(const at::Tensor& target, const at::Tensor& x) const;
  int64_t Flops() const { return 2 * inputs * outputs; }  // a row

  // Set() makes a block's y, and Add() adds to it. REQUIRES: packed.
  void Set(const RowBlock& y, const RowBlock& x, int64_t count) const;
  void Add(const RowBlock& y, const RowBlock& x, int64_t count) const;

  int64_t inputs;
  int64_t outputs;
  bool with_bias;
  double factor = 1;  // of weight and bias, until they are loaded
  at::Tensor weight;  // [outputs, inputs]; undefined once it is packed
  at::Tensor bias;    // [outputs]
  PackedWeight packed;

 private:
  at::Tensor MultiplyPacked(const at::Tensor& x) const;
};

// Makes the tensors of a layer of those of its parts, whose outputs are its own in this order. The
// parts lose theirs.
void JoinParts(Linear& whole, const std::vector<Linear*>& parts);

struct LayerNorm;

// Reads rows through a norm, or as they are without one.
struct NormedRows {
  const at::Tensor& rows;
  const LayerNorm* norm = nullptr;
  at::Tensor lacking{};  // is added to each row before the norm; undefined: nothing
  at::Tensor visible{};  // BOOL [rows], others are zeros, whatever the norm says; undefined: all

  // Returns the rows [rows, width] through the norm.
  at::Tensor Normed() const;
  // Returns a block of the rows, computed in the scratch of kBlockRows · width elements if it is
  // not as it stands there.
  RowBlock Block(int64_t row, int64_t count, float* scratch) const;
  void Copy(int64_t row, int64_t count, const RowBlock& out) const;
};

// Is what a block of rows goes through while it is in the cache.
struct BlockStep {
  int64_t scratch_elements = 0;
  std::function<void(int64_t row, int64_t count, float* scratch)> apply;
};

// Normalises over the last axis with the biased variance (torch.nn.LayerNorm).
struct LayerNorm {
  explicit LayerNorm(int64_t size, double epsilon = 1e-5, bool biased = true)
      : width(size), eps(epsilon), with_bias(biased) {}

  // Makes one that gives rows a length instead: x / max(|x|, epsilon) · g, with one number g for
  // all features (ScaleNorm; Nguyen & Salazar 2019, arXiv:1910.05895).
  static LayerNorm OfLength(int64_t size, double epsilon);
  // Makes one that divides rows by the root of their mean square: x / sqrt(mean(x²) + epsilon) · w
  // (RMSNorm; Zhang & Sennrich 2019, arXiv:1910.07467), or with `from_one` · (1 + w).
  static LayerNorm OfMeanSquare(int64_t size, double epsilon, bool from_one = false);

  void Declare(const Scope& scope);
  // Normalises x, or x + lacking where that is defined.
  at::Tensor operator()(const at::Tensor& x, const at::Tensor& lacking = {}) const;
  // Normalises a block of x into y, F32 on the CPU; they may be the same.
  void Set(const RowBlock& y, const RowBlock& x, int64_t count) const;
  // Normalises blocks of rows in place, F32 on the CPU.
  BlockStep Step(const at::Tensor& rows) const;

  enum class Kind : uint8_t { kLayer, kLength, kMeanSquare };

  int64_t width;
  double eps;
  bool with_bias;
  Kind kind = Kind::kLayer;
  bool from_one = false;  // until it is loaded, one is missing in each weight
  at::Tensor weight;      // [width]; of length: g [1]
  at::Tensor bias;

 private:
  at::Tensor MeanSquares(const at::Tensor& x) const;
};

// Computes w2(activation(w1(x))), or with `gated` w2(activation(a) · b) where [a, b] = w1(x) (GLU).
struct FeedForward {
  FeedForward(int64_t width, int64_t inner) : FeedForward(width, inner, width, Activation::kGelu) {}
  FeedForward(int64_t in, int64_t inner, int64_t out, Activation function, bool with_gate = false,
              bool biased = true)
      : w1(in, with_gate ? 2 * inner : inner, biased),
        w2(inner, out, biased),
        activation(function),
        gated(with_gate) {}

  // The packages have different names for its two layers.
  void Declare(const Scope& scope, const char* first = "w1", const char* second = "w2");
  // Declares w1 as two layers: `gate`, which is activated, and `inner`. REQUIRES: gated.
  void DeclareGated(const Scope& gate, const Scope& inner, const Scope& outer);
  at::Tensor operator()(const at::Tensor& x) const;
  // Adds the result for norm(x), or for x without a norm, to the target. They may be the same
  // tensor.
  void AddTo(const at::Tensor& target, const at::Tensor& x, const LayerNorm* norm) const;
  // Adds the result for rows through their norm to the target, but for the bias of w2. REQUIRES:
  // not packed().
  void AddWithoutBias(const at::Tensor& target, const NormedRows& x) const;
  int64_t Flops() const { return w1.Flops() + w2.Flops(); }

  // These need packed() layers. Step(), PostNormStep() and Add() then compute block by block; Add()
  // takes one block, with ScratchElements() of scratch.
  bool packed() const { return w1.packed && w2.packed; }
  BlockStep Step(const at::Tensor& target, const at::Tensor& x, const LayerNorm* norm) const;
  // Makes y = before(rows), and rows = after(y + the result for y).
  BlockStep PostNormStep(const at::Tensor& rows, const LayerNorm& before,
                         const LayerNorm& after) const;
  int64_t ScratchElements() const;
  void Add(const RowBlock& target, const RowBlock& x, int64_t count, const LayerNorm* norm,
           float* scratch) const;

  Linear w1;
  Linear w2;
  Activation activation;
  bool gated;

 private:
  at::Tensor Inner(const at::Tensor& x) const;  // what w2 multiplies

  std::vector<Linear> halves_;  // of w1, without weights once they are joined
};

// Adds function(source) to the target, slice by slice, so that what the function holds in between
// stays bounded however many rows there are. Source and target may be the same tensor.
void AddByRows(const at::Tensor& target, const at::Tensor& source,
               const std::function<at::Tensor(const at::Tensor&)>& function);
// Calls function(first row, rows) for all slices.
void ByRows(const at::Tensor& source, const std::function<void(int64_t, int64_t)>& function);

}  // namespace linserve
