#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace linserve::static_models {

// Views a table's rows as those of tokens, in the CPU's memory: F32 or BF16.
class TokenRows {
 public:
  // The tensors are those of a static model, and must outlive this; `mapping` and `weights` may be
  // undefined.
  TokenRows(const at::Tensor& table, const at::Tensor& mapping, const at::Tensor& weights);

  // mean [width] = the mean of the rows of `count` tokens or, with a mask, of those for which it is
  // true; zeros if there are none.
  void Mean(const int64_t* tokens, const bool* mask, int64_t count, float* mean) const;

 private:
  const at::Tensor& table_;
  const at::Tensor& mapping_;
  const at::Tensor& weights_;
};

}  // namespace linserve::static_models
