#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "attention/blocks/block_slots.h"
#include "models/linformer_pytorch/options.h"
#include "models/network/parameters.h"

namespace linserve::linformer_pytorch {

// Holds the tensors of all heads under one name, "to_q.{head}.weight", one after another in one
// tensor once they are loaded.
class HeadTensors {
 public:
  explicit HeadTensors(int64_t count) : slots_(static_cast<size_t>(count)) {}

  int64_t count() const { return static_cast<int64_t>(slots_.size()); }
  // Returns the tensor of head `index`, or the only tensor for all of them.
  at::Tensor& slot(int64_t index) { return slots_.size() == 1 ? slots_[0] : slots_[index]; }
  // Stacks the tensors, [count, ...], and gives the slots up.
  at::Tensor TakeStacked();

 private:
  std::vector<at::Tensor> slots_;
};

// Is E or F: how the rows of keys or values become slots, for each head or for all of them alike.
// It may serve several layers.
class LengthProjection {
 public:
  explicit LengthProjection(const HeadOptions& options);

  // Declares it as heads.{0...}.{name} in the scope of an attention.
  void Declare(const Scope& attention, const std::string& name);
  // Gives up the form that Add() needs. To be called once all of the attentions that it serves work
  // by blocks only.
  void Pack(DType products);

  bool is_convolution() const { return options_.method == ProjectionMethod::kConvolution; }
  int64_t matrices() const { return weights_.count(); }
  int64_t slots() const { return options_.slots(); }
  // Sequences may be cut into slices at multiples of so many rows.
  int64_t multiple() const { return is_convolution() ? options_.stride() : 1; }
  // Says whether (E·x)·Wᵀ may stand for E·(x·Wᵀ).
  bool CommutesWithWidth() const { return matrices() == 1 && !is_convolution(); }

  // Adds rows [count, length, heads · width], `first` and following of their sequences, to sums
  // [count, heads, slots, width] in F32. `head` is the first one of those heads.
  void Add(const at::Tensor& rows, int64_t first, int64_t head, at::Tensor& sums) const;
  // Adds the bias to sums [count, heads, slots, width] with all rows in them.
  void AddBias(at::Tensor& sums) const;

  // Returns the matrices in the form for blocks. REQUIRES: no convolution; Pack() was called.
  const LengthWeights& ByBlocks() const { return packed_; }

  double Flops(int64_t length) const;

 private:
  // Lays the loaded tensors out as the products take them. A second call, for another attention
  // that this serves, does nothing.
  void Prepare();

  HeadOptions options_;
  HeadTensors weights_;
  HeadTensors biases_;
  at::Tensor matrices_;  // as AddProjected or AddConvolved take them
  at::Tensor bias_;      // [heads or 1, slots or 1, 1 or width]
  LengthWeights packed_;
};

}  // namespace linserve::linformer_pytorch
