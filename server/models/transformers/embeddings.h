#pragma once

#include <ATen/core/Tensor.h>

#include "attention/rows/placed_layout.h"
#include "models/network/layers.h"
#include "models/network/parameters.h"
#include "models/transformers/options.h"

namespace linserve::transformers {

// Makes the rows that the first layer reads, of tokens, their positions and their types.
class Embeddings {
 public:
  explicit Embeddings(const Options& options);

  void Declare(const Scope& scope);

  at::TensorOptions options() const { return words_.options(); }

  // Returns rows [rows, dim] for ids and types [rows]. Types that are undefined are zeros.
  at::Tensor operator()(const at::Tensor& ids, const at::Tensor& types,
                        const PlacedLayout& layout) const;

 private:
  void AddPositionsOf(at::Tensor& rows, const at::Tensor& ids, const PlacedLayout& layout) const;

  Options options_;
  at::Tensor words_, positions_, types_;
  LayerNorm norm_;
};

}  // namespace linserve::transformers
