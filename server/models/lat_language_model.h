#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "models/lat_autopadder.h"
#include "models/lat_options.h"
#include "models/lat_stack.h"
#include "models/layers.h"

namespace linserve {

// linear_attention_transformer.LinearAttentionTransformerLM: token embedding and positions, the
// stack (between two projections where emb_dim is not dim), a norm and the output layer.
class LatLanguageModel {
 public:
  explicit LatLanguageModel(const LatLanguageModelOptions& options, Autopadder autopadder = {});

  void Declare(const Scope& scope);

  // Of a sequence of `tokens` and a context of `context_rows`, the output layer included.
  double Flops(int64_t tokens, int64_t context_rows) const;

  const LatLanguageModelOptions& options() const { return options_; }
  // Width of y.
  int64_t output_width() const;

  // What the package returns, of embeddings [rows, emb_dim].
  at::Tensor Output(const at::Tensor& embeddings) const;

  int64_t Layers() const { return stack_.Layers(); }

  // What it keeps of a sequence that comes chunk by chunk.
  std::vector<StateSlot> State() const { return stack_.State(); }

  // One forward pass, a layer a step.
  class Run {
   public:
    // ids [rows] as `sequences.own` has them; `model` must outlive the run.
    Run(const LatLanguageModel& model, const at::Tensor& ids, LatSequences sequences);

    bool Step() { return run_.Step(); }  // false once every layer is done
    // The rows before the output layer. REQUIRES: Step() returned false.
    at::Tensor TakeEmbeddings();

   private:
    const LatLanguageModel& model_;
    Autopadded autopadded_;
    LatStack::Run run_;
  };

 private:
  LatStack::Run Start(const at::Tensor& ids, LatSequences sequences,
                      const Autopadded& autopadded) const;
  void AddPositionsTo(at::Tensor& rows, const LatSequences& sequences) const;
  bool projects() const { return options_.emb_dim != options_.stack.dim; }

  LatLanguageModelOptions options_;
  Autopadder autopadder_;
  at::Tensor token_emb_;
  at::Tensor positions_;      // learned or sinusoid: a row a position
  at::Tensor layer_rotary_;   // of the heads
  at::Tensor coarse_, fine_;  // axial
  Linear project_in_, project_out_;
  LatStack stack_;
  LayerNorm norm_;
  Linear out_;
};

}  // namespace linserve
