#include "models/linear_attention_transformer/language_model.h"

#include <utility>

#include "attention/rows/aten.h"

namespace linserve::linear_attention_transformer {
namespace {

PositionOptions PositionsOf(const LanguageModelOptions& options) {
  const int64_t longest = options.stack.max_seq_len;
  const int64_t window = options.stack.local_attn_window_size;
  return {.kind = options.positions,
          .longest = longest,
          .width = options.emb_dim,
          .head_width = options.stack.dim_head,
          .axial_shape = {(longest + window - 1) / window, window}};
}

}  // namespace

LanguageModel::LanguageModel(const LanguageModelOptions& options, Autopadder autopadder)
    : options_(options),
      autopadder_(autopadder),
      positions_(PositionsOf(options)),
      project_in_(options.emb_dim, options.stack.dim),
      project_out_(options.stack.dim, options.emb_dim),
      stack_(StackOf(options.stack)),
      norm_(options.emb_dim),
      out_(options.emb_dim, options.num_tokens) {}

void LanguageModel::Declare(const Scope& scope) {
  token_emb_.Declare(scope / "token_emb", options_.num_tokens, options_.emb_dim);
  positions_.Declare(scope);
  const Scope transformer = scope / "transformer";
  if (projects()) {
    project_in_.Declare(transformer / "project_in");
    stack_.Declare(transformer / "fn" / "layers");
    project_out_.Declare(transformer / "project_out");
  } else {
    stack_.Declare(transformer / "layers");
  }
  norm_.Declare(scope / "norm");
  if (options_.return_embeddings) {
    scope.LeavesOut("out.*");  // a head that the model was trained with
  } else {
    out_.DeclareLogits(scope / "out");
  }
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

Stack::Steps LanguageModel::Start(const at::Tensor& ids, Sequences sequences,
                                  const Autopadded& autopadded) const {
  sequences.own = autopadded.Pad(sequences.own.mask, ids.options());
  sequences.rotary = positions_.RotaryOf(sequences);
  at::Tensor rows = token_emb_(autopadded.Pad(ids));
  positions_.AddTo(rows, sequences);
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
