#include <cmath>

#include "attention/linear/continued_linear_attention.h"
#include "attention/linear/linear_attention.h"
#include "attention/local/continued_local_attention.h"
#include "attention/positions/positions.h"
#include "attention/rows/aten.h"
#include "models/performer_pytorch/attention.h"

// This part of Attention computes sequences that come chunk by chunk.
namespace linserve::performer_pytorch {

std::vector<StateSlot> Attention::State() const {
  const int64_t width = options_.dim_head;
  const int64_t global = global_heads();
  std::vector<StateSlot> state;
  if (local_heads_ > 0) {
    const StateSlot rows{{local_heads_, 2 * options_.local_window_size, width}};
    state.insert(state.end(), {rows, rows});
  }
  if (global == 0) return state;
  if (!is_softmaxed()) {
    state.push_back({{global, options_.nb_features, width}});
    state.push_back({{global, options_.nb_features, 1}, causal_ ? kAdded : 0});
    return state;
  }
  state.push_back({{global, width, width}});
  if (!causal_) return state;
  const StateSlot column{{global, width, 1}};
  state.insert(state.end(), {column, column});
  return state;
}

void Attention::AddNext(const at::Tensor& target, const at::Tensor& x, const PlacedLayout& layout,
                        const at::Tensor& rotary, SessionMemory& memory) const {
  const at::Tensor queries = to_q_(x);
  const at::Tensor keys = to_k_(x);
  const at::Tensor values = to_v_(x);
  if (rotary.defined() && global_heads() > 0) {
    for (const at::Tensor& rows : {queries, keys}) {
      at::Tensor turned = Global(rows);
      Rotate(turned, OneSequence(layout.rows), global_heads(), rotary);
    }
  }
  if (local_heads_ > 0) {
    for (const at::Tensor& rows : {queries, keys}) {
      const at::Tensor heads = rows.unflatten(-1, {options_.heads, options_.dim_head})
                                   .transpose(0, 1)
                                   .narrow(0, global_heads(), local_heads_);
      heads.copy_(TurnedHalves(heads, memory.row_positions()));
    }
  }
  const at::Tensor attended = at::empty_like(queries);
  std::vector<at::Tensor> state(State().size());
  for (at::Tensor& slot : state) slot = memory.Next();
  for (const Span& span : Spans(layout)) {
    const auto heads = [&](const at::Tensor& rows) {
      return SplitHeads(View(rows, span), options_.heads);
    };
    const auto first = memory.positions().begin() + span.first;
    std::vector<at::Tensor> own;
    for (const at::Tensor& slot : state) own.push_back(slot.narrow(0, span.first, span.count));
    AttendToNext({heads(queries), heads(keys), heads(values), heads(attended)},
                 {first, first + span.count}, own);
  }
  to_out_.AddTo(target, attended);
}

void Attention::AttendToNext(const Heads& heads, const std::vector<int64_t>& positions,
                             const std::vector<at::Tensor>& state) const {
  const auto part = [&](int64_t first, int64_t count) {
    const auto of = [&](const at::Tensor& x) { return x.narrow(1, first, count); };
    return Heads{of(heads.queries), of(heads.keys), of(heads.values), of(heads.out)};
  };
  auto slot = state.begin();
  if (local_heads_ > 0) {
    const auto [queries, keys, values, out] = part(global_heads(), local_heads_);
    ContinueLocalAttention(queries, keys, values, positions, options_.local_window_size,
                           {slot[0], slot[1]}, out);
    slot += 2;
  }
  if (global_heads() == 0) return;
  const auto [queries, keys, values, out] = part(0, global_heads());
  if (is_softmaxed()) {
    return ContinueLinearAttention(queries, keys, values, positions, /*bucket=*/1,
                                   {slot[0], slot[1], slot[2], {}, {}, {}}, out, kDivisor);
  }
  FeatureState sums{slot[0], slot[1]};
  out.copy_(ContinueFeatureAttention(queries, keys, values, {}, FormWith(ShiftOf(keys)), sums));
}

void Attention::ReadContext(const at::Tensor& source, const MaskedLayout& layout,
                            const std::vector<at::Tensor>& sums) const {
  const at::Tensor all_keys = to_k_(source);
  const at::Tensor all_values = to_v_(source);
  if (layout.mask.defined()) {
    all_values.masked_fill_(layout.mask.logical_not().unsqueeze(-1), 0);
  }
  for (const Span& span : Spans(layout.layout)) {
    const at::Tensor keys = SplitHeads(View(all_keys, span), options_.heads);
    const at::Tensor values = SplitHeads(View(all_values, span), options_.heads);
    const auto own = [&](size_t i) { return sums[i].narrow(0, span.first, span.count); };
    if (is_softmaxed()) {
      const double width = static_cast<double>(options_.dim_head);
      own(0).copy_(LinearContext(keys, values, {}).mul_(std::sqrt(width)));
      continue;
    }
    FeatureState state{own(0), own(1)};
    AddKeys(keys, values, {}, FormWith(ShiftOf(keys)), state);
  }
}

void Attention::AddNextToContext(const at::Tensor& target, const at::Tensor& x,
                                 const PlacedLayout& layout, const at::Tensor& source,
                                 const MaskedLayout& source_layout, SessionMemory& memory) const {
  std::vector<at::Tensor> sums(State().size());
  for (at::Tensor& sum : sums) sum = memory.Next();
  if (source.defined()) ReadContext(source, source_layout, sums);
  const at::Tensor all_queries = to_q_(x);
  const at::Tensor attended = at::empty_like(all_queries);
  for (const Span& span : Spans(layout)) {
    const at::Tensor queries = SplitHeads(View(all_queries, span), options_.heads);
    const at::Tensor out = SplitHeads(View(attended, span), options_.heads);
    const auto own = [&](size_t i) { return sums[i].narrow(0, span.first, span.count); };
    if (is_softmaxed()) {
      AttendToContext(queries, own(0), out);
    } else {
      out.copy_(AttendToAdded(queries, {own(0), own(1)}, FormWith({})));
    }
  }
  to_out_.AddTo(target, attended);
}

}  // namespace linserve::performer_pytorch
