#include "attention/linear/feature_attention.h"
#include "attention/rows/aten.h"
#include "attention/rows/spans.h"
#include "models/fast_transformers/attention.h"

// This part of Attention computes sequences that come chunk by chunk.
namespace linserve::fast_transformers {

std::vector<StateSlot> Attention::State() const {
  return {{{options_.heads, features_.features(), options_.value_width}},
          {{options_.heads, features_.features(), 1}}};
}

at::Tensor Attention::Continue(const at::Tensor& x, const PlacedLayout& layout,
                               SessionMemory& memory) const {
  const at::Tensor queries = query_(x);
  const at::Tensor keys = key_(x);
  const at::Tensor values = value_(x);
  const at::Tensor all_values = memory.Next();
  const at::Tensor all_weights = memory.Next();
  const at::Tensor attended = at::empty_like(values);
  for (const Span& span : Spans(layout)) {
    const auto heads = [&](const at::Tensor& rows) {
      return SplitHeads(View(rows, span), options_.heads);
    };
    FeatureState state{all_values.narrow(0, span.first, span.count),
                       all_weights.narrow(0, span.first, span.count)};
    View(attended, span)
        .copy_(JoinHeads(ContinueFeatureAttention(heads(queries), heads(keys), heads(values), {},
                                                  FormOf({}, {}), state)));
  }
  return out_(attended);
}

at::Tensor Attention::ContinueToSource(const at::Tensor& x, const PlacedLayout& layout,
                                       const Source* source, SessionMemory& memory) const {
  const at::Tensor all_values = memory.Next();
  const at::Tensor all_weights = memory.Next();
  const FeatureForm form = FormOf({}, {});
  const auto heads = [&](const at::Tensor& rows, const Span& span) {
    return SplitHeads(View(rows, span), options_.heads);
  };
  const auto state_of = [&](const Span& span) {
    return FeatureState{all_values.narrow(0, span.first, span.count),
                        all_weights.narrow(0, span.first, span.count)};
  };
  if (source != nullptr) {
    const at::Tensor keys = key_(source->rows);
    const at::Tensor values = value_(source->rows);
    for (const Span& span : Spans(source->layout)) {
      FeatureState state = state_of(span);
      at::Tensor mask;
      if (source->mask.defined()) mask = View(source->mask, span).unsqueeze(1);
      AddKeys(heads(keys, span), heads(values, span), mask, form, state);
    }
  }
  const at::Tensor queries = query_(x);
  const at::Tensor attended = at::empty({x.size(0), value_inner()}, x.options());
  for (const Span& span : Spans(layout)) {
    View(attended, span)
        .copy_(JoinHeads(AttendToAdded(heads(queries, span), state_of(span), form)));
  }
  return out_(attended);
}

}  // namespace linserve::fast_transformers
