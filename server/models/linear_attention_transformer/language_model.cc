#include "models/linear_attention_transformer/language_model.h"

#include <utility>
#include <vector>

#include "attention/positions/positions.h"
#include "attention/rows/aten.h"

namespace linserve::linear_attention_transformer {
namespace {

using Positions = LanguageModelOptions::Positions;

void DeclareSinusoid(const Scope& scope, at::Tensor& slot, int64_t length, int64_t width) {
  constexpr double kBase = 10000;
  scope.DeclareBuffer("emb", slot, {length, width},
                      [length, width] { return Sinusoid(length, width, kBase); });
}

}  // namespace

LanguageModel::LanguageModel(const LanguageModelOptions& options, Autopadder autopadder)
    : options_(options),
      autopadder_(autopadder),
      project_in_(options.emb_dim, options.stack.dim),
      project_out_(options.stack.dim, options.emb_dim),
      stack_(StackOf(options.stack)),
      norm_(options.emb_dim),
      out_(options.emb_dim, options.num_tokens) {}

void LanguageModel::Declare(const Scope& scope) {
  const int64_t width = options_.emb_dim;
  const int64_t longest = options_.stack.max_seq_len;
  const int64_t window = options_.stack.local_attn_window_size;
  (scope / "token_emb").Declare("weight", token_emb_, {options_.num_tokens, width}, Init::kNormal);
  const Scope positions = scope / "pos_emb";
  switch (options_.positions) {
    case Positions::kAxial: {
      const std::vector<int64_t> coarse = {1, (longest + window - 1) / window, 1, width};
      const std::vector<int64_t> fine = {1, 1, window, width};
      positions.Declare("weights.0", coarse_, coarse, Init::kNormal);
      positions.Declare("weights.1", fine_, fine, Init::kNormal);
      // These are the names up to axial-positional-embedding 0.2.
      positions.Declare("weights_0", coarse_, coarse, Init::kNormal);
      positions.Declare("weights_1", fine_, fine, Init::kNormal);
      break;
    }
    case Positions::kLearned:
      (positions / "emb").Declare("weight", positions_, {longest, width}, Init::kNormal);
      break;
    case Positions::kRotary:
      DeclareSinusoid(positions, positions_, longest, width);
      DeclareSinusoid(scope / "layer_pos_emb", layer_rotary_, longest, options_.stack.dim_head);
      break;
  }
  const Scope transformer = scope / "transformer";
  if (projects()) {
    project_in_.Declare(transformer / "project_in");
    stack_.Declare(transformer / "fn" / "layers");
    project_out_.Declare(transformer / "project_out");
  } else {
    stack_.Declare(transformer / "layers");
  }
  norm_.Declare(scope / "norm");
  if (!options_.return_embeddings) out_.DeclareUnpacked(scope / "out");
}

int64_t LanguageModel::output_width() const {
  return options_.return_embeddings ? options_.emb_dim : options_.num_tokens;
}

double LanguageModel::Flops(int64_t tokens, int64_t context_rows) const {
  const int64_t projections = projects() ? project_in_.Flops() + project_out_.Flops() : 0;
  const int64_t output = options_.return_embeddings ? 0 : out_.Flops();
  return stack_.Flops(tokens, context_rows) +
         static_cast<double>(projections + output) * static_cast<double>(tokens);
}

at::Tensor LanguageModel::Output(const at::Tensor& embeddings) const {
  return options_.return_embeddings ? embeddings : out_(embeddings);
}

void LanguageModel::AddPositionsTo(at::Tensor& rows, const Sequences& sequences) const {
  const int64_t width = options_.emb_dim;
  const bool axial = options_.positions == Positions::kAxial;
  if (sequences.memory && axial) {
    const at::Tensor& positions = sequences.memory->row_positions();
    const int64_t window = options_.stack.local_attn_window_size;
    rows.add_(coarse_.view({-1, width}).index_select(0, positions.div(window, "floor")));
    rows.add_(fine_.view({-1, width}).index_select(0, positions.remainder(window)));
  } else if (sequences.memory) {
    rows.add_(positions_.index_select(0, sequences.memory->row_positions()));
  } else if (axial) {
    AddAxialPositions(rows, sequences.own.layout, coarse_.view({-1, width}),
                      fine_.view({-1, width}));
  } else {
    AddPositions(rows, sequences.own.layout, positions_);
  }
}

Stack::Steps LanguageModel::Start(const at::Tensor& ids, Sequences sequences,
                                  const Autopadded& autopadded) const {
  sequences.own = autopadded.Pad(sequences.own.mask, ids.options());
  sequences.rotary = layer_rotary_;
  if (sequences.memory && layer_rotary_.defined()) {
    sequences.rotary = layer_rotary_.index_select(0, sequences.memory->row_positions());
  }
  at::Tensor rows = at::embedding(token_emb_, autopadded.Pad(ids));
  AddPositionsTo(rows, sequences);
  if (projects()) rows = project_in_(rows);
  return Stack::Steps(stack_, std::move(rows), std::move(sequences));
}

LanguageModel::Steps::Steps(const LanguageModel& model, const at::Tensor& ids, Sequences sequences)
    : model_(model),
      autopadded_(sequences.memory ? Autopadder::OfChunks() : model.autopadder_,
                  sequences.own.layout),
      steps_(model.Start(ids, std::move(sequences), autopadded_)) {}

at::Tensor LanguageModel::Steps::TakeEmbeddings() {
  const at::Tensor rows = autopadded_.Cut(steps_.streams().TakeMean());
  return model_.norm_(model_.projects() ? model_.project_out_(rows) : rows);
}

}  // namespace linserve::linear_attention_transformer
