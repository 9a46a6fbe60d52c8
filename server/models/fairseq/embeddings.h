#pragma once

#include <ATen/core/Tensor.h>

#include "attention/rows/placed_layout.h"
#include "models/fairseq/options.h"
#include "models/network/layers.h"
#include "models/network/parameters.h"
#include "models/tokens/token_embedding.h"

namespace linserve::fairseq {

// Makes the rows that the first layer reads. Those of padding tokens are zeros.
class Embeddings {
 public:
  explicit Embeddings(const Options& options);

  void Declare(const Scope& encoder);

  // Returns rows [rows, dim] for ids [rows].
  at::Tensor operator()(const at::Tensor& ids, const PlacedLayout& layout) const;

  // Returns the weights of all tokens, [vocabulary, dim], where a tied head finds them.
  at::Tensor& words() { return words_.weight(); }

 private:
  void DeclarePositions(const Scope& positions);

  Options options_;
  TokenEmbedding words_;
  at::Tensor positions_;  // [padding + 1 + longest, dim]
  LayerNorm norm_;
  Linear map_;
};

}  // namespace linserve::fairseq
