#include "attention/linear/continued_linear_attention.h"
#include "attention/linear/linear_attention.h"
#include "attention/local/continued_local_attention.h"
#include "attention/positions/positions.h"
#include "attention/rows/aten.h"
#include "models/linear_attention_transformer/attention.h"

// This part of Attention computes sequences that come chunk by chunk.
namespace linserve::linear_attention_transformer {

std::vector<StateSlot> Attention::State() const {
  const int64_t local = options_.local_heads;
  const int64_t global = options_.heads - local;
  const int64_t width = options_.dim_head;
  std::vector<StateSlot> state;
  if (local > 0) {
    const StateSlot rows{{local, 2 * options_.window, width}};
    state.insert(state.end(), {rows, rows});
  }
  if (global > 0) {
    const StateSlot context{{global, width, width}};
    const StateSlot column{{global, width, 1}};
    state.insert(state.end(), {context, column, column});
    if (options_.bucket > 1) state.insert(state.end(), {context, column, column});
  }
  return state;
}

void Attention::AddNext(const at::Tensor& target, const at::Tensor& x, const PlacedLayout& layout,
                        const at::Tensor& rotary, SessionMemory& memory) const {
  at::Tensor queries = to_q_(x);
  at::Tensor keys = to_k_(x);
  const at::Tensor values = to_v_(x);
  if (rotary.defined()) {
    const PlacedLayout rows = OneSequence(layout.rows);
    Rotate(queries, rows, options_.heads, rotary);
    Rotate(keys, rows, options_.heads, rotary);
  }
  const at::Tensor attended = at::empty_like(queries);
  size_t slots = State().size();
  bool local_is_done = false;
  if (options_.local_heads > 0 && memory.is_step()) {
    // The windows are most of the state, and a row changes little of them.
    StepLocally({queries, keys, values, {}, attended}, memory);
    local_is_done = true;
    slots -= 2;
  }
  std::vector<at::Tensor> state;
  for (; slots > 0; --slots) state.push_back(memory.Next());
  for (const Span& span : Spans(layout)) {
    const auto heads = [&](const at::Tensor& rows) {
      return SplitHeads(View(rows, span), options_.heads);
    };
    const auto first = memory.positions().begin() + span.first;
    std::vector<at::Tensor> own;
    for (const at::Tensor& slot : state) own.push_back(slot.narrow(0, span.first, span.count));
    AttendNext({heads(queries), heads(keys), heads(values), {}, heads(attended)},
               {first, first + span.count}, own, local_is_done);
  }
  to_out_.AddTo(target, attended);
}

void Attention::StepLocally(const Operands& rows, SessionMemory& memory) const {
  const std::vector<at::Tensor> keys = memory.NextInPlace();
  const std::vector<at::Tensor> values = memory.NextInPlace();
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto own = [&](const at::Tensor& x) {
      return x.select(0, static_cast<int64_t>(i))
          .unflatten(0, {options_.heads, options_.dim_head})
          .narrow(0, 0, options_.local_heads)
          .unsqueeze(1);
    };
    StepLocalAttention(own(rows.queries), own(rows.keys), own(rows.values), memory.positions()[i],
                       options_.window, {keys[i], values[i]}, own(rows.out));
  }
}

void Attention::AttendNext(const Operands& rows, const std::vector<int64_t>& positions,
                           const std::vector<at::Tensor>& state, bool local_is_done) const {
  const int64_t local = options_.local_heads;
  const int64_t global = options_.heads - local;
  auto slot = state.begin();
  if (local > 0 && !local_is_done) {
    const auto part = [&](const at::Tensor& x) { return x.narrow(1, 0, local); };
    ContinueLocalAttention(part(rows.queries), part(rows.keys), part(rows.values), positions,
                           options_.window, {slot[0], slot[1]}, part(rows.out));
    slot += 2;
  }
  if (global > 0) {
    const auto part = [&](const at::Tensor& x) { return x.narrow(1, local, global); };
    ContinuedSums sums{slot[0], slot[1], slot[2], {}, {}, {}};
    if (options_.bucket > 1) {
      sums.open_context = slot[3];
      sums.open_total = slot[4];
      sums.open_shift = slot[5];
    }
    ContinueLinearAttention(part(rows.queries), part(rows.keys), part(rows.values), positions,
                            options_.bucket, sums, part(rows.out));
  }
}

std::vector<StateSlot> Attention::ContextState() const {
  return {{{options_.heads, options_.dim_head, options_.dim_head}}};
}

void Attention::AddNextToContext(const at::Tensor& target, const at::Tensor& x,
                                 const PlacedLayout& layout, const at::Tensor& source,
                                 const MaskedLayout& source_layout, SessionMemory& memory) const {
  const at::Tensor contexts = memory.Next();
  const auto heads = [&](const at::Tensor& rows, const Span& span) {
    return SplitHeads(View(rows, span), options_.heads);
  };
  if (source.defined()) {
    const at::Tensor keys = to_k_(source);
    const at::Tensor values = to_v_(source);
    for (const Span& span : Spans(source_layout.layout)) {
      at::Tensor mask;
      if (source_layout.mask.defined()) mask = View(source_layout.mask, span).unsqueeze(-2);
      contexts.narrow(0, span.first, span.count)
          .copy_(LinearContext(heads(keys, span), heads(values, span), mask));
    }
  }
  const at::Tensor queries = to_q_(x);
  const at::Tensor attended = at::empty_like(queries);
  for (const Span& span : Spans(layout)) {
    AttendToContext(heads(queries, span), contexts.narrow(0, span.first, span.count),
                    heads(attended, span));
  }
  to_out_.AddTo(target, attended);
}

}  // namespace linserve::linear_attention_transformer
