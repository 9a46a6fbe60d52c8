#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "attention/products/block_math.h"

namespace linserve {

// Says how the logits of rows become weights of words, and those of all rows one vector.
struct VocabularyFold {
  bool sum = false;    // over the rows; else the largest
  bool twice = false;  // log(1 + log(1 + max(logit, 0)))

  // Folds rows of logits [count, width] into weights [width], which begin as zeros. The rows are
  // overwritten. NaN stays NaN.
  void Add(const RowBlock& logits, int64_t count, int64_t width, float* weights) const;
  // Folds logits [rows, width] on any device into weights [width], both of F32.
  void Add(at::Tensor logits, const at::Tensor& weights) const;
  // Makes the weights of what all rows were folded into.
  void Finish(at::Tensor& weights) const;
};

}  // namespace linserve
