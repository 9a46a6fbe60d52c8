#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "models/linear_attention_transformer/autopadder.h"
#include "models/linear_attention_transformer/options.h"
#include "models/linear_attention_transformer/stack.h"
#include "models/network/layers.h"
#include "models/tokens/token_embedding.h"
#include "models/tokens/token_positions.h"

namespace linserve::linear_attention_transformer {

// Is linear_attention_transformer.LinearAttentionTransformerLM: token embedding and positions, the
// stack (between two projections where emb_dim is not dim), a norm and the output layer.
class LanguageModel {
 public:
  explicit LanguageModel(const LanguageModelOptions& options, Autopadder autopadder = {});

  void Declare(const Scope& scope);

  // Counts additions and multiplications for `tokens` and a context of `context_rows`, the output
  // layer included.
  double Flops(int64_t tokens, int64_t context_rows) const;

  const LanguageModelOptions& options() const { return options_; }
  // Returns the width of y, in features.
  int64_t output_width() const;

  // Returns what the package makes of embeddings [rows, emb_dim].
  at::Tensor Output(const at::Tensor& embeddings) const;

  int64_t Layers() const { return stack_.Layers(); }

  // Says what it keeps of a sequence that comes chunk by chunk.
  std::vector<StateSlot> State() const { return stack_.State(); }

  // Is one forward pass, which takes a layer a step.
  class Steps {
   public:
    // Takes ids [rows] as `sequences.own` has them; `model` must outlive this.
    Steps(const LanguageModel& model, const at::Tensor& ids, Sequences sequences);

    bool Step() { return steps_.Step(); }  // false once every layer is done
    // Returns the rows before the output layer. REQUIRES: Step() returned false.
    at::Tensor TakeEmbeddings();

   private:
    const LanguageModel& model_;
    Autopadded autopadded_;
    Stack::Steps steps_;
  };

 private:
  Stack::Steps Start(const at::Tensor& ids, Sequences sequences,
                     const Autopadded& autopadded) const;
  bool projects() const { return options_.emb_dim != options_.stack.dim; }

  LanguageModelOptions options_;
  Autopadder autopadder_;
  TokenEmbedding token_emb_;
  TokenPositions positions_;
  Linear project_in_, project_out_;
  Stack stack_;
  LayerNorm norm_;
  Linear out_;
};

}  // namespace linserve::linear_attention_transformer
