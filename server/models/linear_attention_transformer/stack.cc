#include "models/linear_attention_transformer/stack.h"

#include <utility>

#include "attention/rows/aten.h"

namespace linserve::linear_attention_transformer {

Stack::Stack(const Options& options) : reversible_(options.reversible) {
  for (int64_t step = 0; step < options.depth; ++step) {
    layers_.emplace_back(options, Layer::Kind::kMain, step);
    if (options.attend_axially) layers_.emplace_back(options, Layer::Kind::kAxial, step);
    if (options.receives_context) layers_.emplace_back(options, Layer::Kind::kContext, step);
  }
}

void Stack::Declare(const Scope& scope) {
  const Scope layers = scope / "layers" / (reversible_ ? "blocks" : "layers");
  for (size_t i = 0; i < layers_.size(); ++i) {
    const Scope layer = layers / static_cast<int64_t>(i);
    if (reversible_) {
      layers_[i].Declare(layer / "f" / "net", layer / "g" / "net");
    } else {
      layers_[i].Declare(layer / "0", layer / "1");
    }
  }
}

double Stack::Flops(int64_t rows, int64_t context_rows) const {
  double flops = 0;
  for (const Layer& layer : layers_) flops += layer.Flops(rows, context_rows);
  return flops;
}

std::vector<StateSlot> Stack::State() const {
  std::vector<StateSlot> state;
  for (const Layer& layer : layers_) {
    for (StateSlot& slot : layer.State()) state.push_back(std::move(slot));
  }
  return state;
}

Stack::Steps::Steps(const Stack& stack, at::Tensor rows, Sequences sequences)
    : stack_(stack), sequences_(std::move(sequences)), stream_(std::move(rows)) {
  if (stack_.reversible_) second_stream_ = stream_.clone();
}

bool Stack::Steps::Step() {
  const Layer& layer = stack_.layers_[layer_++];
  // A plain stack has one stream, which is read and added to. A reversible one has two: u += f(v),
  // then v += g(u).
  at::Tensor& u = stack_.reversible_ ? second_stream_ : stream_;
  layer.Apply(stream_, sequences_, u);
  return layer_ < stack_.layers_.size();
}

at::Tensor Stack::Steps::Take() {
  if (stack_.reversible_) stream_.add_(second_stream_).mul_(0.5);
  return std::move(stream_);
}

}  // namespace linserve::linear_attention_transformer
