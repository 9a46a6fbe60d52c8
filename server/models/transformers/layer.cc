#include "models/transformers/layer.h"

#include <algorithm>
#include <memory>

#include "attention/products/block_product.h"
#include "attention/rows/aten.h"
#include "models/network/self_attention_by_blocks.h"
#include "models/transformers/names.h"

namespace linserve::transformers {

Layer::Layer(const Options& options, const LayerKind& kind, bool first)
    : options_(options),
      first_(first),
      attention_(options, kind),
      attention_norm_(options.dim, options.eps, options.norm_bias),
      again_norm_(options.dim, options.eps, options.norm_bias),
      feed_forward_(options.dim, options.inner, options.dim, options.activation, options.gated,
                    options.inner_bias),
      inner_norm_(options.dim, options.eps, options.norm_bias) {
  feed_forward_.w2.with_bias = options.outer_bias;
  if (kind.experts) {
    experts_.emplace(options.dim, options.inner, options.experts, options.activation);
  }
  if (first && options.convolution.size > 0) convolution_.emplace(options);
}

void Layer::Declare(const Scope& layer, const at::Tensor& positions) {
  const Names& names = NamesOf(options_.family);
  attention_.Declare(layer, positions);
  if (!unnormed()) DeclareNorm(layer / names.attention_norm, attention_norm_);
  if (norms_again()) DeclareNorm(layer / names.again_norm, again_norm_);
  DeclareFeedForward(layer);
  DeclareNorm(layer / names.inner_norm, inner_norm_);
}

void Layer::DeclareFeedForward(const Scope& layer) {
  const Names& names = NamesOf(options_.family);
  if (experts_) return experts_->Declare(layer / "mlp");
  if (names.gate != nullptr && options_.gated) {
    feed_forward_.DeclareGated(layer / names.gate, layer / names.inner, layer / names.outer);
    return;
  }
  if (options_.gate_last) {
    layer.AfterLoading([this](DType) {
      at::Tensor& both = feed_forward_.w1.weight;
      both = at::roll(both, options_.inner, 0);
    });
  }
  feed_forward_.Declare(layer, names.inner, names.outer);
}

double Layer::Flops(int64_t length) const {
  const double of_row = experts_ ? experts_->Flops() : static_cast<double>(feed_forward_.Flops());
  return attention_.Flops(length) + of_row * static_cast<double>(length);
}

void Layer::Apply(at::Tensor& rows, const Context& context) const {
  const at::Tensor read = convolution_ ? rows.clone() : at::Tensor();
  packed() ? ApplyByBlocks(rows, context) : ApplyToTensors(rows, context);
  if (convolution_) convolution_->AddTo(rows, read, context);
}

void Layer::ApplyToTensors(at::Tensor& rows, const Context& context) const {
  const Linear& out = attention_.out();
  const Linear& outer = feed_forward_.w2;
  const at::Tensor read = norms_again() ? rows.clone() : at::Tensor();
  // Products add themselves to the rows. With norms behind the sums a bias is left to the norm, and
  // takes no launch of its own; with norms before them the rows themselves need it.
  out.AddProduct(rows, attention_.Attended(NormedRows{rows, NormBefore()}.Normed(), context));
  if (options_.pre_norm) {
    if (out.with_bias) rows.add_(out.bias);
    feed_forward_.AddWithoutBias(rows, {rows, &inner_norm_});
    if (outer.with_bias) rows.add_(outer.bias);
    return;
  }
  rows = attention_norm_(rows, out.bias);
  if (norms_again()) rows = again_norm_(rows.add_(read));
  if (experts_) {
    experts_->AddWithoutBias(rows, rows);
  } else {
    feed_forward_.AddWithoutBias(rows, {rows});
  }
  rows = inner_norm_(rows, experts_ ? experts_->bias() : outer.bias);
}

void Layer::ApplyByBlocks(at::Tensor& rows, const Context& context) const {
  const at::Tensor global_queries = attention_.GlobalQueries(rows, context);
  SelfAttentionByBlocks layer{
      .rows = rows,
      .layout = context.layout,
      .attention = attention_.blocks(),
      .width = attention_.width(context),
      .keys = options_.dim,
      .values = 2 * options_.dim,
      .scratch_elements = ScratchElements(context),
      .project =
          [&](int64_t row, int64_t count, const RowBlock& qkv, float* scratch) {
            attention_.Project(NormedRows{rows, NormBefore()}.Block(row, count, scratch), count,
                               qkv, context);
          },
      .turn = [&](const RowBlock& qkv, int64_t place,
                  int64_t count) { attention_.Rotate(qkv, place, count, context); },
      .scores = [&](int64_t start) { return attention_.ScoresOf(start, context); },
      .finish = [&](const RowBlock& some, const RowBlock& attended, int64_t count,
                    float* scratch) { Finish(some, attended, count, scratch, context); }};
  if (attention_.convolves()) {
    layer.add = [&](const RowBlock& qkv, int64_t length, int64_t place, int64_t count,
                    const RowBlock& attended) {
      attention_.AddConvolved(qkv, length, place, count, attended);
    };
  }
  if (attention_.by_landmarks()) {
    layer.alone = true;
    layer.attend = [&](size_t, const at::Tensor& qkv, const BlockAttention::Keys& keys,
                       const BlockAttention::Scores& scores) {
      const auto landmarks = std::make_shared<const BlockLandmarks>(
          attention_.landmarks(), qkv, attention_.blocks(), keys, scores);
      return [landmarks](const RowBlock& queries, int64_t, int64_t count, const RowBlock& out,
                         float* scratch) { landmarks->Attend(queries, count, out, scratch); };
    };
  }
  if (context.globals) {
    layer.attend = [&](size_t sequence, const at::Tensor& qkv, const BlockAttention::Keys& keys,
                       const BlockAttention::Scores& scores) {
      return attention_.AttendIn(sequence, qkv, keys, scores, global_queries, context);
    };
  }
  linserve::Apply(layer);
}

int64_t Layer::ScratchElements(const Context& context) const {
  const int64_t by_landmarks =
      kBlockRows * options_.dim + BlockLandmarks::ScratchElements(attention_.landmarks());
  const int64_t read = norms_again() ? kBlockRows * options_.dim : 0;
  return read +
         std::max({SelfAttentionByBlocks::AttendedElements(attention_.width(context)),
                   attention_.by_landmarks() ? by_landmarks : 0,
                   experts_ ? experts_->ScratchElements() : feed_forward_.ScratchElements()});
}

void Layer::Finish(const RowBlock& rows, const RowBlock& attended, int64_t count, float* scratch,
                   const Context& context) const {
  // Behind all that else is in the scratch.
  const RowBlock read{scratch + ScratchElements(context) - kBlockRows * options_.dim, options_.dim};
  for (int64_t i = 0; norms_again() && i < count; ++i) {
    std::copy_n(rows.Rows(i).data, options_.dim, read.Rows(i).data);
  }
  attention_.AddTo(rows, attended, count);
  if (options_.pre_norm) return feed_forward_.Add(rows, rows, count, &inner_norm_, scratch);
  attention_norm_.Set(rows, rows, count);
  if (norms_again()) {
    AddRows(rows, count, options_.dim, read);
    again_norm_.Set(rows, rows, count);
  }
  if (experts_) {
    experts_->Add(rows, rows, count, scratch);
  } else {
    feed_forward_.Add(rows, rows, count, nullptr, scratch);
  }
  inner_norm_.Set(rows, rows, count);
}

}  // namespace linserve::transformers
