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
    : stack_(stack),
      sequences_(std::move(sequences)),
      streams_(std::move(rows), stack.reversible_) {}

bool Stack::Steps::Step() {
  const Layer& layer = stack_.layers_[layer_++];
  layer.Apply(streams_.v(), sequences_, streams_.u());
  return layer_ < stack_.layers_.size();
}

}  // namespace linserve::linear_attention_transformer
