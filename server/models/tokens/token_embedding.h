#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "models/network/parameters.h"

namespace linserve {

// Holds a row for each token, which is looked up (torch.nn.Embedding). Of a model of many tokens it
// is most: where products on the CPU are rounded, the table is of BF16 there. Its rows are of F32.
class TokenEmbedding {
 public:
  // Declares the scope's "weight".
  void Declare(const Scope& scope, int64_t tokens, int64_t width);
  // Says that the table stays as it was loaded. It is to be said before Declare().
  void KeepAsLoaded() { rounds_ = false; }

  // Returns the rows of ids of any shape, in the type that the model computes in.
  at::Tensor operator()(const at::Tensor& ids) const;
  // Writes the row of one id. REQUIRES: it is on the CPU.
  void Copy(int64_t id, float* row) const;

  bool is_cpu() const { return weight_.is_cpu(); }
  // Returns the options of the rows.
  at::TensorOptions options() const;
  at::Tensor& weight() { return weight_; }
  const at::Tensor& weight() const { return weight_; }

 private:
  at::Tensor weight_;  // [tokens, width]
  bool rounds_ = true;
};

}  // namespace linserve
