#include "models/performer_pytorch/stack.h"

#include <utility>

#include "attention/rows/aten.h"

namespace linserve::performer_pytorch {

Stack::Stack(const Options& options) : reversible_(options.reversible) {
  for (int64_t step = 0; step < options.depth; ++step) {
    layers_.emplace_back(options, Layer::Kind::kSelf, step);
    if (options.cross_attend) layers_.emplace_back(options, Layer::Kind::kContext, step);
  }
}

void Stack::Declare(const Scope& scope) {
  DeclareLayers(scope / "net");
  DeclareLayers(scope / "proj_updater" / "instance");
  (scope / "proj_updater").Ignore("calls_since_last_redraw");
}

void Stack::DeclareLayers(const Scope& scope) {
  for (size_t i = 0; i < layers_.size(); ++i) {
    const auto index = static_cast<int64_t>(i);
    if (reversible_) {
      const Scope block = scope / "blocks" / index;
      layers_[i].Declare(block / "f" / "net", block / "g" / "net");
    } else {
      const Scope layer = scope / "layers" / index;
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

}  // namespace linserve::performer_pytorch
