#include "models/linformer/stack.h"

#include <utility>

#include "attention/rows/aten.h"

namespace linserve::linformer {

Stack::Stack(const AttentionOptions& options, int64_t depth, bool reversible)
    : reversible_(reversible) {
  for (int64_t i = 0; i < depth; ++i) {
    layers_.push_back({LayerNorm(options.dim), MakeAttention(options), LayerNorm(options.dim),
                       FeedForward(options.dim, 4 * options.dim)});
  }
}

void Stack::Declare(const Scope& scope) {
  const Scope net = scope / "net";
  for (size_t i = 0; i < layers_.size(); ++i) {
    const auto index = static_cast<int64_t>(i);
    const Scope layer = reversible_ ? net / "blocks" / index : net / "layers" / index;
    const Scope attention = reversible_ ? layer / "f" / "net" : layer / "0";
    const Scope feed_forward = reversible_ ? layer / "g" / "net" : layer / "1";
    layers_[i].attention.Declare(attention / "fn");
    layers_[i].attention_norm.Declare(attention / "norm");
    layers_[i].feed_forward.Declare(feed_forward / "fn");
    layers_[i].feed_forward_norm.Declare(feed_forward / "norm");
  }
  scope.AfterLoading([this](DType) { SumBiases(); });
}

void Stack::SumBiases() {
  if (reversible_ || layers_.front().attention.bias().is_cpu()) return;
  const auto type = layers_.front().attention.bias().scalar_type();
  at::Tensor sum = at::zeros_like(layers_.front().attention.bias(), at::kFloat);
  for (Layer& layer : layers_) {
    layer.before_attention = sum.to(type);
    sum = sum + layer.attention.bias();
    layer.before_feed_forward = sum.to(type);
    sum = sum + layer.feed_forward.w2.bias;
  }
  biases_ = sum.to(type);
}

double Stack::Flops(int64_t length) const {
  double flops = 0;
  for (const Layer& layer : layers_) {
    flops += layer.attention.Flops(length, length) +
             static_cast<double>(layer.feed_forward.Flops()) * static_cast<double>(length);
  }
  return flops;
}

Stack::Steps::Steps(const Stack& stack, at::Tensor rows, PlacedLayout layout)
    : stack_(stack), layout_(std::move(layout)), streams_(std::move(rows), stack.reversible_) {}

bool Stack::Steps::Step() {
  if (layer_ == stack_.layers_.size()) return false;
  const Layer& layer = stack_.layers_[layer_++];
  if (stack_.biases_.defined()) {
    ApplyWithoutBiases(layer);
    return layer_ < stack_.layers_.size();
  }
  at::Tensor& u = streams_.u();
  at::Tensor& v = streams_.v();
  const NormedRows normed{v, &layer.attention_norm};
  const FeedForward& feed_forward = layer.feed_forward;
  if (layer.attention.packed() && feed_forward.packed()) {
    layer.attention.AddByBlocks(u, {normed, layout_, normed, layout_},
                                feed_forward.Step(v, u, &layer.feed_forward_norm));
  } else {
    layer.attention.AddTo(u, {normed, layout_, normed, layout_});
    feed_forward.AddTo(v, u, &layer.feed_forward_norm);
  }
  return layer_ < stack_.layers_.size();
}

void Stack::Steps::ApplyWithoutBiases(const Layer& layer) {
  const at::Tensor& rows = streams_.v();
  const NormedRows normed{rows, &layer.attention_norm, layer.before_attention};
  layer.attention.AddWithoutBias(rows, {normed, layout_, normed, layout_});
  layer.feed_forward.AddWithoutBias(rows,
                                    {rows, &layer.feed_forward_norm, layer.before_feed_forward});
}

at::Tensor Stack::Steps::Take() {
  at::Tensor rows = streams_.TakeSum();
  if (stack_.biases_.defined()) rows.add_(stack_.biases_);
  return rows;
}

}  // namespace linserve::linformer
