#include "models/linformer_pytorch/stack.h"

#include <algorithm>

#include "attention/rows/aten.h"
#include "attention/rows/slices.h"

namespace linserve::linformer_pytorch {

PostNormStack::PostNormStack(const StackOptions& options) : options_(options) {
  if (options.attention.sharing == ParameterSharing::kLayerwise) {
    shared_ = std::make_shared<LengthProjection>(options.attention);
  }
  for (int64_t layer = 0; layer < options.depth; ++layer) {
    AddAttention(options, layer, /*cross=*/false);
    AddFeedForward(options, options.WidthBefore(layer), options.WidthBefore(layer + 1));
    if (!options.decoder_mode) continue;
    AddAttention(options, layer, /*cross=*/true);
    AddFeedForward(options, options.channels(), options.channels());
  }
  per_layer_ = seq_.size() / static_cast<size_t>(options.depth);
}

void PostNormStack::AddAttention(const StackOptions& options, int64_t layer, bool cross) {
  const HeadOptions heads = options.AttentionOf(layer, cross);
  Sublayer& sublayer = seq_.emplace_back(heads.width);
  sublayer.attention.emplace(heads, shared_);
  sublayer.cross = cross;
}

void PostNormStack::AddFeedForward(const StackOptions& options, int64_t in, int64_t out) {
  if (!options.include_ff) return;
  Sublayer& sublayer = seq_.emplace_back(out);
  sublayer.feed_forward.emplace(in, options.dim_ff, out, options.activation);
  if (in != out) sublayer.resample.emplace(in, out);
}

void PostNormStack::Declare(const Scope& scope) {
  int64_t position = 0;
  for (Sublayer& sublayer : seq_) {
    const Scope residual = scope / "seq" / position++;
    if (sublayer.attention) sublayer.attention->Declare(residual / "fn");
    if (sublayer.feed_forward) sublayer.feed_forward->Declare(residual / "fn", "w_1", "w_2");
    if (sublayer.resample) sublayer.resample->Declare(residual / "resample");
    sublayer.norm.Declare(residual / "norm");
  }
}

double PostNormStack::Flops(int64_t length) const {
  double flops = 0;
  for (const Sublayer& sublayer : seq_) {
    int64_t per_row = 0;
    if (sublayer.attention) flops += sublayer.attention->Flops(length, length);
    if (sublayer.feed_forward) per_row += sublayer.feed_forward->Flops();
    if (sublayer.resample) per_row += sublayer.resample->Flops();
    flops += static_cast<double>(per_row) * static_cast<double>(length);
  }
  return flops;
}

int64_t PostNormStack::Matrices() const {
  int64_t matrices = shared_ ? 1 : 0;
  for (const Sublayer& sublayer : seq_) {
    if (sublayer.attention) matrices += sublayer.attention->OwnMatrices();
  }
  return matrices;
}

std::vector<std::string> PostNormStack::Warnings() const {
  std::vector<std::string> warnings;
  if (shared_ && options_.k_reduce_by_layer > 0) {
    warnings.emplace_back(
        "k_reduce_by_layer has no effect with parameter_sharing \"layerwise\": all layers share "
        "the first one's E");
  }
  return warnings;
}

AttentionInput PostNormStack::InputOf(const Sublayer& sublayer, const at::Tensor& rows,
                                      const StackContext& context) {
  const bool cross = sublayer.cross;
  return {rows,
          context.layout,
          cross ? context.embeddings : rows,
          cross ? context.embeddings_layout : context.layout,
          context.hidden_queries,
          cross ? context.hidden_embeddings : context.hidden_rows};
}

void PostNormStack::Attend(const Sublayer& sublayer, at::Tensor& rows,
                           const StackContext& context) const {
  sublayer.attention->Forward(InputOf(sublayer, rows, context), options_.scratch,
                              [&](int64_t begin, const at::Tensor& result) {
                                at::Tensor target = rows.narrow(0, begin, result.size(0));
                                target.copy_(sublayer.norm(result.add_(target)));
                              });
}

void PostNormStack::FeedForwardRows(const Sublayer& sublayer, at::Tensor& rows) const {
  at::Tensor target = rows;
  if (sublayer.resample) target = at::empty({rows.size(0), sublayer.norm.width}, rows.options());
  for (int64_t row = 0; row < rows.size(0); row += options_.scratch.feed_forward_rows) {
    const int64_t count = std::min(options_.scratch.feed_forward_rows, rows.size(0) - row);
    const at::Tensor source = rows.narrow(0, row, count);
    at::Tensor result = (*sublayer.feed_forward)(source);
    result.add_(sublayer.resample ? (*sublayer.resample)(source) : source);
    target.narrow(0, row, count).copy_(sublayer.norm(result));
    RowsDone(count);
  }
  rows = target;
}

bool PostNormStack::AttendByBlocks(const Sublayer& sublayer, const Sublayer* next, at::Tensor& rows,
                                   const StackContext& context) {
  const FeedForward* feed_forward = nullptr;
  if (next != nullptr && next->feed_forward && !next->resample && next->feed_forward->packed()) {
    feed_forward = &*next->feed_forward;
  }
  sublayer.attention->AddByBlocks(rows, InputOf(sublayer, rows, context),
                                  feed_forward != nullptr
                                      ? feed_forward->PostNormStep(rows, sublayer.norm, next->norm)
                                      : sublayer.norm.Step(rows));
  return feed_forward != nullptr;
}

bool PostNormStack::Steps::Step() {
  const size_t end = std::min(layer_ + stack_.per_layer_, stack_.seq_.size());
  while (layer_ < end) {
    const Sublayer& sublayer = stack_.seq_[layer_++];
    if (sublayer.feed_forward) {
      stack_.FeedForwardRows(sublayer, rows_);
    } else if (sublayer.attention->WorksByBlocks()) {
      const Sublayer* next = layer_ < end ? &stack_.seq_[layer_] : nullptr;
      if (AttendByBlocks(sublayer, next, rows_, context_)) ++layer_;
    } else {
      stack_.Attend(sublayer, rows_, context_);
    }
  }
  return layer_ < stack_.seq_.size();
}

}  // namespace linserve::linformer_pytorch
