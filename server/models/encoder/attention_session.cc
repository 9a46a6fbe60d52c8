#include "attention/rows/aten.h"
#include "models/encoder/attention.h"

// This part of Attention computes sequences that come chunk by chunk.
namespace linserve::encoder {

std::vector<StateSlot> Attention::State() const {
  return RunningAttention::StateOf(*options_.method, options_.heads, options_.dim_head,
                                   options_.dim_head);
}

void Attention::Continue(at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                         const Context& context) const {
  std::vector<at::Tensor> state;
  for (size_t i = 0; i < State().size(); ++i) state.push_back(context.memory->Next());
  for (const Span& span : Spans(context.layout)) {
    std::vector<at::Tensor> own;
    for (const at::Tensor& slot : state) own.push_back(slot.narrow(0, span.first, span.count));
    const auto heads = [&](const at::Tensor& rows) {
      return SplitHeads(View(rows, span), options_.heads);
    };
    RunningAttention running(*options_.method, own);
    View(queries, span)
        .copy_(JoinHeads(running.Continue(heads(queries), heads(keys), heads(values))));
  }
}

}  // namespace linserve::encoder
