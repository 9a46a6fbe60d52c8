#include "models/fairseq/layer.h"

#include "attention/rows/aten.h"

namespace linserve::fairseq {
namespace {

ProjectedAttention AttentionOf(const Options& options,
                               const std::shared_ptr<LengthMatrix>& shared) {
  const auto own = [&] {
    return std::make_shared<LengthMatrix>(options.longest, options.slots,
                                          LengthMatrix::Form::kLinear);
  };
  const std::shared_ptr<LengthMatrix> e = shared ? shared : own();
  return {{.dim = options.dim,
           .heads = options.heads,
           .dim_head = options.dim / options.heads,
           .kv_heads = options.heads,
           .biased = true},
          {.query = "q_proj",
           .key = "k_proj",
           .value = "v_proj",
           .out = "out_proj",
           .e = "compress_k",
           .f = options.keys_and_values_share ? nullptr : "compress_v"},
          e,
          shared || options.keys_and_values_share ? e : own()};
}

}  // namespace

Layer::Layer(const Options& options, const std::shared_ptr<LengthMatrix>& shared)
    : pre_norm_(options.pre_norm),
      attention_(AttentionOf(options, shared)),
      attention_norm_(options.dim),
      feed_forward_(options.dim, options.inner, options.dim, options.activation),
      final_norm_(options.dim) {}

void Layer::Declare(const Scope& layer) {
  attention_.Declare(layer / "self_attn");
  attention_norm_.Declare(layer / "self_attn_layer_norm");
  attention_norm_.Declare(layer / "layer_norms" / 0);  // in older checkpoints, as below
  feed_forward_.Declare(layer, "fc1", "fc2");
  final_norm_.Declare(layer / "final_layer_norm");
  final_norm_.Declare(layer / "layer_norms" / 1);
}

double Layer::Flops(int64_t length) const {
  return attention_.Flops(length, length) +
         static_cast<double>(feed_forward_.Flops()) * static_cast<double>(length);
}

void Layer::Apply(at::Tensor& rows, const PlacedLayout& layout) const {
  return attention_.packed() && feed_forward_.packed() ? ApplyByBlocks(rows, layout)
                                                       : ApplyToTensors(rows, layout);
}

void Layer::ApplyByBlocks(at::Tensor& rows, const PlacedLayout& layout) const {
  if (pre_norm_) {
    const NormedRows normed{rows, &attention_norm_};
    return attention_.AddByBlocks(rows, {normed, layout, normed, layout},
                                  feed_forward_.Step(rows, rows, &final_norm_));
  }
  attention_.AddByBlocks(rows, {{rows}, layout, {rows}, layout},
                         feed_forward_.PostNormStep(rows, attention_norm_, final_norm_));
}

void Layer::ApplyToTensors(at::Tensor& rows, const PlacedLayout& layout) const {
  const NormedRows read{rows, pre_norm_ ? &attention_norm_ : nullptr};
  attention_.AddTo(rows, {read, layout, read, layout});
  if (pre_norm_) return feed_forward_.AddTo(rows, rows, &final_norm_);
  rows = attention_norm_(rows);
  feed_forward_.AddTo(rows, rows, nullptr);
  rows = final_norm_(rows);
}

}  // namespace linserve::fairseq
