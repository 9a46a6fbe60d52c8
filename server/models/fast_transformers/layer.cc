#include "models/fast_transformers/layer.h"

#include "attention/rows/aten.h"

namespace linserve::fast_transformers {

Layer::Layer(const LayerOptions& options)
    : self_(options.self),
      self_norm_(options.dim(), options.eps),
      cross_norm_(options.dim(), options.eps),
      feed_forward_(options.dim(), options.inner, options.dim(), options.activation),
      norm_(options.dim(), options.eps) {
  if (options.cross) cross_.emplace(*options.cross);
}

void Layer::Declare(const Scope& layer, const LayerNames& names) {
  self_.Declare(layer, names.self);
  self_norm_.Declare(layer / names.self_norm);
  if (cross_) {
    cross_->Declare(layer, names.cross);
    cross_norm_.Declare(layer / names.cross_norm);
  }
  feed_forward_.Declare(layer, names.inner.c_str(), names.outer.c_str());
  norm_.Declare(layer / names.norm);
}

double Layer::Flops(int64_t length, int64_t memory) const {
  return self_.Flops(length, length) + (cross_ ? cross_->Flops(length, memory) : 0) +
         static_cast<double>(feed_forward_.Flops()) * static_cast<double>(length);
}

std::vector<StateSlot> Layer::State() const {
  std::vector<StateSlot> state = self_.State();
  if (!cross_) return state;
  std::vector<StateSlot> own = cross_->State();
  state.insert(state.end(), own.begin(), own.end());
  return state;
}

void Layer::Apply(at::Tensor& rows, const Context& context) const {
  if (context.session != nullptr) return ApplyToNext(rows, context);
  return feed_forward_.packed() ? ApplyByBlocks(rows, context) : ApplyToTensors(rows, context);
}

void Layer::FeedForwardTo(at::Tensor& rows) const {
  feed_forward_.AddTo(rows, rows, nullptr);
  rows = norm_(rows);
}

void Layer::ApplyToTensors(at::Tensor& rows, const Context& context) const {
  const Source own{rows, context.layout, context.mask, {}};
  rows = self_norm_(rows + self_(rows, context.layout, own, context.rotation));
  if (cross_) rows = cross_norm_(rows + (*cross_)(rows, context.layout, *context.memory, {}));
  FeedForwardTo(rows);
}

void Layer::ApplyToNext(at::Tensor& rows, const Context& context) const {
  SessionMemory& session = *context.session;
  rows = self_norm_(rows + self_.Continue(rows, context.layout, session));
  if (cross_) {
    const Source* memory = context.memory ? &*context.memory : nullptr;
    rows = cross_norm_(rows + cross_->ContinueToSource(rows, context.layout, memory, session));
  }
  FeedForwardTo(rows);
}

void Layer::ApplyByBlocks(at::Tensor& rows, const Context& context) const {
  const BlockStep last = feed_forward_.PostNormStep(rows, cross_ ? cross_norm_ : self_norm_, norm_);
  const Source own = Source::Of(rows, context.layout, context.mask);
  if (!cross_) return AddByBlocks(self_, rows, context, own, last);
  AddByBlocks(self_, rows, context, own, self_norm_.Step(rows));
  AddByBlocks(*cross_, rows, context, *context.memory, last);
}

void Layer::AddByBlocks(const Attention& attention, at::Tensor& rows, const Context& context,
                        const Source& source, const BlockStep& then) const {
  if (attention.WorksByBlocks()) {
    return attention.AddByBlocks(rows, context.layout, source, context.rotation, then);
  }
  rows.add_(attention(rows, context.layout, source, context.rotation));
  ForSlicedBlocks(rows.size(0), then.scratch_elements, then.apply);
}

}  // namespace linserve::fast_transformers
