#include "models/t5/layer.h"

#include "models/network/self_attention_by_blocks.h"
#include "models/t5/rows_in_f16.h"

namespace linserve::t5 {

Layer::Layer(const Options& options, int64_t index)
    : options_(options),
      attention_(options, index),
      attention_norm_(LayerNorm::OfMeanSquare(options.dim, options.eps)),
      feed_forward_(options.dim, options.inner, options.dim, options.activation, options.gated,
                    /*biased=*/false),
      inner_norm_(attention_norm_) {
  feed_forward_.w2.with_bias = false;
}

void Layer::Declare(const Scope& layer) {
  const Scope first = layer / "layer" / 0;
  const Scope second = layer / "layer" / 1;
  attention_.Declare(first / "SelfAttention");
  attention_norm_.Declare(first / "layer_norm");
  const Scope products = second / "DenseReluDense";
  if (options_.gated) {
    feed_forward_.DeclareGated(products / "wi_0", products / "wi_1", products / "wo");
  } else {
    feed_forward_.Declare(products, "wi", "wo");
  }
  inner_norm_.Declare(second / "layer_norm");
  layer.AfterLoading([this](DType) {
    ShrinkInF16({&feed_forward_.w2.weight}, {&attention_norm_, &inner_norm_});
  });
}

double Layer::Flops(int64_t length) const {
  return attention_.Flops(length) +
         static_cast<double>(feed_forward_.Flops()) * static_cast<double>(length);
}

void Layer::Apply(at::Tensor& rows, const Context& context) const {
  if (attention_.packed() && feed_forward_.packed()) return ApplyByBlocks(rows, context);
  attention_.out().AddProduct(rows, attention_.Attended(attention_norm_(rows), context));
  feed_forward_.AddWithoutBias(rows, {rows, &inner_norm_});
}

void Layer::ApplyByBlocks(at::Tensor& rows, const Context& context) const {
  linserve::Apply(SelfAttentionByBlocks{
      .rows = rows,
      .layout = context.layout,
      .attention = attention_.blocks(),
      .width = 3 * options_.width(),
      .keys = options_.width(),
      .values = 2 * options_.width(),
      .scratch_elements = feed_forward_.ScratchElements(),
      .project =
          [&](int64_t row, int64_t count, const RowBlock& qkv, float* scratch) {
            attention_.qkv().Set(qkv, NormedRows{rows, &attention_norm_}.Block(row, count, scratch),
                                 count);
          },
      .turn = [](const RowBlock&, int64_t, int64_t) {},
      .scores = [&](int64_t start) { return attention_.ScoresOf(start, context); },
      .finish =
          [&](const RowBlock& some, const RowBlock& attended, int64_t count, float* scratch) {
            attention_.out().Add(some, attended, count);
            feed_forward_.Add(some, some, count, &inner_norm_, scratch);
          }});
}

}  // namespace linserve::t5
