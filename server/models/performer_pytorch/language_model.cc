#include "models/performer_pytorch/language_model.h"

#include <string>
#include <utility>

#include "attention/positions/positions.h"
#include "attention/rows/aten.h"

namespace linserve::performer_pytorch {
namespace {

using Positions = LanguageModelOptions::Positions;

void DeclareFixedPositions(const Scope& scope, at::Tensor& slot, int64_t length, int64_t width) {
  constexpr double kBase = 10000;
  scope.DeclareBuffer("emb", slot, {length, width},
                      [length, width] { return Sinusoid(length, width, kBase); });
}

}  // namespace

LanguageModel::LanguageModel(const LanguageModelOptions& options)
    : options_(options),
      axes_(options.axial_shape.size()),
      stack_(StackOf(options.stack)),
      norm_(options.stack.dim),
      to_out_(options.stack.dim, options.num_tokens) {}

void LanguageModel::Declare(const Scope& scope) {
  (scope / "token_emb")
      .Declare("weight", token_emb_, {options_.num_tokens, options_.stack.dim}, Init::kNormal);
  DeclarePositions(scope);
  performer_pytorch::Declare(stack_, scope / "performer");
  norm_.Declare(scope / "norm");
  if (!options_.tie_embed) to_out_.DeclareUnpacked(scope / "to_out");
}

void LanguageModel::DeclarePositions(const Scope& scope) {
  const int64_t width = options_.stack.dim;
  const int64_t longest = options_.max_seq_len;
  const Scope positions = scope / "pos_emb";
  switch (options_.positions) {
    case Positions::kRotary:
      DeclareFixedPositions(positions, positions_, longest, width);
      DeclareFixedPositions(scope / "layer_pos_emb", layer_rotary_, longest,
                            options_.stack.dim_head);
      break;
    case Positions::kLearned:
      (positions / "emb").Declare("weight", positions_, {longest, width}, Init::kNormal);
      break;
    case Positions::kAxial:
      for (size_t i = 0; i < axes_.size(); ++i) {
        std::vector<int64_t> shape(axes_.size() + 2, 1);
        shape[i + 1] = options_.axial_shape[i];
        shape.back() = width;
        // The second name is that up to axial-positional-embedding 0.2.
        for (const char* name : {"weights.", "weights_"}) {
          positions.Declare(name + std::to_string(i), axes_[i], shape, Init::kNormal);
        }
      }
      positions.AfterLoading([this](DType) { PrepareAxes(); });
      break;
  }
}

void LanguageModel::PrepareAxes() {
  coarse_ = at::zeros({options_.stack.dim}, axes_[0].options());
  for (size_t i = 0; i + 1 < axes_.size(); ++i) coarse_ = coarse_ + axes_[i];
  coarse_ = coarse_.reshape({-1, options_.stack.dim});
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
  return options_.tie_embed ? at::linear(embeddings, token_emb_) : to_out_(embeddings);
}

void LanguageModel::AddPositionsTo(at::Tensor& rows, const Sequences& sequences) const {
  const PlacedLayout& layout = sequences.own.layout;
  if (options_.positions != Positions::kAxial) {
    if (!sequences.memory) return AddPositions(rows, layout, positions_);
    rows.add_(positions_.index_select(0, sequences.memory->row_positions()));
    return;
  }
  const at::Tensor fine = axes_.back().view({-1, options_.stack.dim});
  if (!sequences.memory) return AddAxialPositions(rows, layout, coarse_, fine);
  const at::Tensor& positions = sequences.memory->row_positions();
  rows.add_(coarse_.index_select(0, positions.div(fine.size(0), "floor")));
  rows.add_(fine.index_select(0, positions.remainder(fine.size(0))));
}

Stack::Steps LanguageModel::Start(const at::Tensor& ids, Sequences sequences) const {
  sequences.rotary = layer_rotary_;
  if (sequences.memory && layer_rotary_.defined()) {
    sequences.rotary = layer_rotary_.index_select(0, sequences.memory->row_positions());
  }
  at::Tensor rows = at::embedding(token_emb_, ids);
  AddPositionsTo(rows, sequences);
  return {stack_, std::move(rows), std::move(sequences)};
}

}  // namespace linserve::performer_pytorch
