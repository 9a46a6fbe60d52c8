#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "models/network/layers.h"
#include "models/performer_pytorch/options.h"
#include "models/performer_pytorch/stack.h"
#include "models/tokens/token_embedding.h"
#include "models/tokens/token_positions.h"

namespace linserve::performer_pytorch {

// Is performer_pytorch.PerformerLM: token embedding and positions, the stack, a norm and the output
// layer, which may be the embedding's.
class LanguageModel {
 public:
  explicit LanguageModel(const LanguageModelOptions& options);

  void Declare(const Scope& scope);

  // Counts additions and multiplications for `tokens` and a context of `context_rows`, the output
  // layer included.
  double Flops(int64_t tokens, int64_t context_rows) const;

  const Stack& stack() const { return stack_; }
  // Returns the width of y, in features.
  int64_t output_width() const;

  // Begins the stack on ids [rows] as `sequences.own` has them.
  Stack::Steps Start(const at::Tensor& ids, Sequences sequences) const;
  // Returns the rows before the output layer, of those that the stack gives.
  at::Tensor Embeddings(const at::Tensor& rows) const { return norm_(rows); }
  // Returns what the package makes of embeddings [rows, dim].
  at::Tensor Output(const at::Tensor& embeddings) const;

 private:
  LanguageModelOptions options_;
  TokenEmbedding token_emb_;
  TokenPositions positions_;
  Stack stack_;
  LayerNorm norm_;
  Linear to_out_;
};

}  // namespace linserve::performer_pytorch
