#include "models/performer_pytorch/language_model.h"

#include <utility>

#include "attention/rows/aten.h"

namespace linserve::performer_pytorch {

LanguageModel::LanguageModel(const LanguageModelOptions& options)
    : options_(options),
      positions_({.kind = options.positions,
                  .longest = options.max_seq_len,
                  .width = options.stack.dim,
                  .head_width = options.stack.dim_head,
                  .axial_shape = options.axial_shape}),
      stack_(StackOf(options.stack)),
      norm_(options.stack.dim),
      to_out_(options.stack.dim, options.num_tokens) {}

void LanguageModel::Declare(const Scope& scope) {
  const bool multiplied = options_.tie_embed && !options_.return_encodings;
  if (multiplied) token_emb_.KeepAsLoaded();  // for the logits
  token_emb_.Declare(scope / "token_emb", options_.num_tokens, options_.stack.dim);
  positions_.Declare(scope);
  performer_pytorch::Declare(stack_, scope / "performer");
  norm_.Declare(scope / "norm");
  if (options_.return_encodings) {
    scope.LeavesOut("to_out.*");  // the package's, or a head of one's own
  } else if (!options_.tie_embed) {
    to_out_.DeclareLogits(scope / "to_out");
  }
}

int64_t LanguageModel::output_width() const {
  return options_.return_encodings ? options_.stack.dim : options_.num_tokens;
}

double LanguageModel::Flops(int64_t tokens, int64_t context_rows) const {
  const int64_t output = options_.return_encodings ? 0 : to_out_.Flops();
  return stack_.Flops(tokens, context_rows) +
         static_cast<double>(output) * static_cast<double>(tokens);
}

at::Tensor LanguageModel::Output(const at::Tensor& embeddings) const {
  if (options_.return_encodings) return embeddings;
  return options_.tie_embed ? at::linear(embeddings, token_emb_.weight()) : to_out_(embeddings);
}

Stack::Steps LanguageModel::Start(const at::Tensor& ids, Sequences sequences) const {
  sequences.rotary = positions_.RotaryOf(sequences);
  at::Tensor rows = token_emb_(ids);
  positions_.AddTo(rows, sequences);
  return {stack_, std::move(rows), std::move(sequences)};
}

}  // namespace linserve::performer_pytorch
