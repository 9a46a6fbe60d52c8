#include "models/linformer_pytorch/language_model.h"

#include <algorithm>

#include "attention/positions/rotary_frequencies.h"
#include "attention/rows/aten.h"

namespace linserve::linformer_pytorch {
namespace {

constexpr RotaryFrequencies kPositions{.theta = 100000};  // where other packages have 10000

}  // namespace

LanguageModel::LanguageModel(const LanguageModelOptions& options)
    : options_(options), stack_(options.stack) {
  const int64_t channels = options.stack.channels();
  if (options.emb_dim != channels) {
    project_in_.emplace(options.emb_dim, channels);
    project_out_.emplace(channels, options.emb_dim);
  }
  if (!options.return_emb) to_logits_.emplace(options.emb_dim, options.num_tokens);
}

void LanguageModel::Declare(const Scope& scope) {
  token_emb_.Declare(scope / "to_token_emb", options_.num_tokens, options_.emb_dim);
  (scope / "pos_emb")
      .DeclareBuffer("inv_freq", inverse_frequencies_, {options_.emb_dim / 2},
                     [width = options_.emb_dim] { return FrequenciesOf(kPositions, width); });
  const Scope linformer = scope / "linformer";
  if (project_in_) project_in_->Declare(linformer / "project_in");
  stack_.Declare(project_in_ ? linformer / "fn" : linformer);
  if (project_out_) project_out_->Declare(linformer / "project_out");
  if (to_logits_) {
    to_logits_->DeclareLogits(scope / "to_logits");
  } else {
    scope.LeavesOut("to_logits.*");  // a head that the model was trained with
  }
}

double LanguageModel::Flops(int64_t length) const {
  int64_t per_row = 0;
  for (const std::optional<Linear>* linear : {&project_in_, &project_out_, &to_logits_}) {
    if (*linear) per_row += (*linear)->Flops();
  }
  return stack_.Flops(length) + static_cast<double>(per_row) * static_cast<double>(length);
}

at::Tensor LanguageModel::Positions(int64_t first, int64_t count) const {
  const at::Tensor positions = at::arange(first, first + count, inverse_frequencies_.options());
  const at::Tensor angles = at::outer(positions, inverse_frequencies_);
  return at::cat({angles.sin(), angles.cos()}, -1);
}

at::Tensor LanguageModel::StackInput(const at::Tensor& ids, const PlacedLayout& layout) const {
  constexpr int64_t kRows = 4096;
  at::Tensor result = at::empty({ids.size(0), options_.stack.channels()}, token_emb_.options());
  for (const LayoutSlice& slice :
       LayoutSlices(layout, std::min(kRows, options_.stack.scratch.rows))) {
    const at::Tensor rows = token_emb_(ids.narrow(0, slice.begin, slice.rows));
    for (const SliceSpan& span : slice.spans) {
      View(rows, span).add_(Positions(span.offset, span.length));
    }
    result.narrow(0, slice.begin, slice.rows).copy_(project_in_ ? (*project_in_)(rows) : rows);
  }
  return result;
}

at::Tensor LanguageModel::Embeddings(const at::Tensor& rows) const {
  return project_out_ ? (*project_out_)(rows) : rows;
}

at::Tensor LanguageModel::Output(const std::string& name, const at::Tensor& rows) const {
  const at::Tensor embeddings = Embeddings(rows);
  return name == "y" && to_logits_ ? (*to_logits_)(embeddings) : embeddings;
}

void LanguageModel::AddOutputs(Signature& signature) const {
  const Axis length = Axis::Ragged('n');
  const int64_t width = options_.return_emb ? options_.emb_dim : options_.num_tokens;
  signature.outputs.push_back({.name = "embeddings",
                               .axes = {length, Axis::Fixed(options_.emb_dim)},
                               .mask = "input_mask"});
  signature.outputs.push_back(
      {.name = "y", .axes = {length, Axis::Fixed(width)}, .mask = "input_mask"});
}

}  // namespace linserve::linformer_pytorch
