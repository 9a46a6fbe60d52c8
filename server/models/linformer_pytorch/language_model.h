#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>

#include "models/linformer_pytorch/stack.h"
#include "models/tokens/token_embedding.h"

namespace linserve::linformer_pytorch {

// Is linformer_pytorch.LinformerLM: tokens and sinusoidal positions, the stack (of another width
// than the embeddings between project_in and project_out), and the output layer.
class LanguageModel {
 public:
  explicit LanguageModel(const LanguageModelOptions& options);

  void Declare(const Scope& scope);
  double Flops(int64_t length) const;
  const LanguageModelOptions& options() const { return options_; }
  const PostNormStack& stack() const { return stack_; }

  // Makes of token ids [rows] what the stack takes, [rows, channels].
  at::Tensor StackInput(const at::Tensor& ids, const PlacedLayout& layout) const;
  // Makes [rows, emb_dim] of rows that the stack made.
  at::Tensor Embeddings(const at::Tensor& rows) const;
  // Makes "embeddings" of rows that the stack made, or "y": logits, with return_emb the embeddings
  // again.
  at::Tensor Output(const std::string& name, const at::Tensor& rows) const;

  void AddOutputs(Signature& signature) const;

 private:
  at::Tensor Positions(int64_t first, int64_t count) const;

  LanguageModelOptions options_;
  TokenEmbedding token_emb_;
  at::Tensor inverse_frequencies_;
  std::optional<Linear> project_in_;
  PostNormStack stack_;
  std::optional<Linear> project_out_;
  std::optional<Linear> to_logits_;
};

}  // namespace linserve::linformer_pytorch
