#include "models/lat_stack.h"

#include <utility>

#include "attention/aten.h"

namespace linserve {

LatStack::LatStack(const LatOptions& options) : reversible_(options.reversible) {
  for (int64_t step = 0; step < options.depth; ++step) {
    layers_.emplace_back(options, LatLayer::Kind::kMain, step);
    if (options.attend_axially) layers_.emplace_back(options, LatLayer::Kind::kAxial, step);
    if (options.receives_context) layers_.emplace_back(options, LatLayer::Kind::kContext, step);
  }
}

void LatStack::Declare(const Scope& scope) {
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

double LatStack::Flops(int64_t rows, int64_t context_rows) const {
  double flops = 0;
  for (const LatLayer& layer : layers_) flops += layer.Flops(rows, context_rows);
  return flops;
}

std::vector<StateSlot> LatStack::State() const {
  std::vector<StateSlot> state;
  for (const LatLayer& layer : layers_) {
    for (StateSlot& slot : layer.State()) state.push_back(std::move(slot));
  }
  return state;
}

LatStack::Run::Run(const LatStack& stack, at::Tensor rows, LatSequences sequences)
    : stack_(stack), sequences_(std::move(sequences)), stream_(std::move(rows)) {
  if (stack_.reversible_) second_stream_ = stream_.clone();
}

bool LatStack::Run::Step() {
  const LatLayer& layer = stack_.layers_[layer_++];
  // Plain: one stream is read and added to. Reversible: u += f(v), then v += g(u).
  at::Tensor& u = stack_.reversible_ ? second_stream_ : stream_;
  layer.Apply(stream_, sequences_, u);
  return layer_ < stack_.layers_.size();
}

at::Tensor LatStack::Run::Take() {
  if (stack_.reversible_) stream_.add_(second_stream_).mul_(0.5);
  return std::move(stream_);
}

}  // namespace linserve
