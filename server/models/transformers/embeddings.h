#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "attention/rows/placed_layout.h"
#include "models/network/layers.h"
#include "models/network/parameters.h"
#include "models/tokens/token_embedding.h"
#include "models/transformers/context.h"
#include "models/transformers/options/options.h"

namespace linserve::transformers {

// Holds of what kinds tokens are besides, [rows]; undefined: zeros.
struct TokenKinds {
  at::Tensor types;
  at::Tensor tasks{};
};

// Makes the rows that the first layer reads, of tokens, their positions and their types.
class Embeddings {
 public:
  explicit Embeddings(const Options& options);

  void Declare(const Scope& scope);

  at::TensorOptions options() const { return words_.options(); }

  // Returns rows [rows, dim] for ids [rows].
  at::Tensor operator()(const at::Tensor& ids, const TokenKinds& kinds,
                        const Context& context) const;

 private:
  void AddPositionsOf(at::Tensor& rows, const at::Tensor& ids, const PlacedLayout& layout) const;
  bool projects() const { return options_.projects; }
  at::Tensor ByTensors(const at::Tensor& ids, const TokenKinds& kinds,
                       const Context& context) const;
  // Computes the same on the CPU, block by block.
  at::Tensor ByBlocks(const at::Tensor& ids, const TokenKinds& kinds, const Context& context) const;
  // Returns each row's place in the table of positions.
  std::vector<int64_t> PlacesOf(const int64_t* ids, int64_t rows, const PlacedLayout& layout) const;

  Options options_;
  TokenEmbedding words_;
  at::Tensor positions_, types_, tasks_;
  Linear project_;  // where the tables are of another width
  LayerNorm norm_;
};

}  // namespace linserve::transformers
