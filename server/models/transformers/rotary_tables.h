#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>

#include "models/network/parameters.h"
#include "models/transformers/options/options.h"

namespace linserve::transformers {

// Makes the tables by which layers turn queries and keys. Some files have a table of their own,
// which counts even if it is not what the base gives.
class RotaryTables {
 public:
  explicit RotaryTables(const Options& options) : options_(options) {}

  // Declares what files have.
  void Declare(const Scope& scope);

  // Returns sines and cosines by the layers' bases: F32 [longest, dim_head], on the device of
  // `floats`.
  std::map<double, at::Tensor> operator()(int64_t longest, const at::TensorOptions& floats) const;

 private:
  void DeclareFrequencies(const Scope& scope);
  at::Tensor Make(double theta, int64_t longest, const at::TensorOptions& floats) const;

  const Options& options_;
  at::Tensor frequencies_;  // [dim_head / 2]
  at::Tensor rows_;         // [the longest sequence, dim_head]
};

}  // namespace linserve::transformers
