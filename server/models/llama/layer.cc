#include "models/llama/layer.h"

#include <algorithm>

#include "attention/products/block_product.h"
#include "attention/rows/aten.h"
#include "models/network/self_attention_by_blocks.h"

namespace linserve::llama {

Layer::Layer(const Options& options, const LayerKind& kind)
    : options_(options),
      attention_(options, kind),
      attention_norm_(LayerNorm::OfMeanSquare(options.dim, options.eps, options.norms_from_one)),
      attended_norm_(attention_norm_),
      feed_forward_(options.dim, options.inner, options.dim, options.activation,
                    /*with_gate=*/true, options.inner_bias),
      inner_norm_(attention_norm_),
      outer_norm_(attention_norm_) {}

void Layer::Declare(const Scope& layer) {
  attention_.Declare(layer / "self_attn");
  const Scope mlp = layer / "mlp";
  feed_forward_.w2.factor = options_.added_factor;
  if (options_.joined) {
    feed_forward_.Declare(mlp, "gate_up_proj", "down_proj");
  } else {
    feed_forward_.DeclareGated(mlp / "gate_proj", mlp / "up_proj", mlp / "down_proj");
  }
  const char* inner =
      options_.norms_behind ? "pre_feedforward_layernorm" : "post_attention_layernorm";
  if (options_.norms_before) {
    attention_norm_.Declare(layer / "input_layernorm");
    inner_norm_.Declare(layer / inner);
  }
  if (options_.norms_behind) {
    attended_norm_.Declare(layer / "post_attention_layernorm");
    outer_norm_.Declare(layer / "post_feedforward_layernorm");
  }
}

double Layer::Flops(int64_t length) const {
  return attention_.Flops(length) +
         static_cast<double>(feed_forward_.Flops()) * static_cast<double>(length);
}

void Layer::Apply(at::Tensor& rows, const Context& context) const {
  return packed() ? ApplyByBlocks(rows, context) : ApplyToTensors(rows, context);
}

void Layer::ApplyToTensors(at::Tensor& rows, const Context& context) const {
  const at::Tensor attended =
      attention_.Attended(NormedRows{rows, Before(attention_norm_)}.Normed(), context);
  if (options_.norms_behind) {
    rows.add_(attended_norm_(attention_.out()(attended)));
    return AddByRows(rows, rows, [this](const at::Tensor& some) {
      return outer_norm_(feed_forward_(NormedRows{some, Before(inner_norm_)}.Normed()));
    });
  }
  attention_.out().AddProduct(rows, attended);
  if (options_.out_bias) rows.add_(attention_.out().bias);
  feed_forward_.AddWithoutBias(rows, {rows, &inner_norm_});
  if (options_.inner_bias) rows.add_(feed_forward_.w2.bias);
}

void Layer::ApplyByBlocks(at::Tensor& rows, const Context& context) const {
  linserve::Apply(SelfAttentionByBlocks{
      .rows = rows,
      .layout = context.layout,
      .attention = attention_.blocks(),
      .width = attention_.width(),
      .keys = attention_.keys(),
      .values = attention_.values(),
      .scratch_elements = FinishElements(),
      .project =
          [&](int64_t row, int64_t count, const RowBlock& qkv, float* scratch) {
            const NormedRows normed{rows, Before(attention_norm_)};
            attention_.Project(normed.Block(row, count, scratch), count, qkv);
          },
      .turn = [&](const RowBlock& qkv, int64_t place,
                  int64_t count) { attention_.Turn(qkv, place, count, context); },
      .scores =
          [&](int64_t start) {
            BlockAttention::Scores scores;
            if (context.key_scores.defined()) {
              scores.of_keys = context.key_scores.const_data_ptr<float>() + start;
            }
            return scores;
          },
      .finish = [&](const RowBlock& some, const RowBlock& attended, int64_t count,
                    float* scratch) { Finish(some, attended, count, scratch); }});
}

int64_t Layer::ElementsBeforeAdded() const {
  return std::max(SelfAttentionByBlocks::AttendedElements(attention_.width()),
                  feed_forward_.ScratchElements());
}

int64_t Layer::FinishElements() const {
  if (!options_.norms_behind) return feed_forward_.ScratchElements();
  return ElementsBeforeAdded() + kBlockRows * options_.dim;
}

void Layer::Finish(const RowBlock& rows, const RowBlock& attended, int64_t count,
                   float* scratch) const {
  if (options_.norms_behind) return FinishBehindNorms(rows, attended, count, scratch);
  attention_.out().Add(rows, attended, count);
  feed_forward_.Add(rows, rows, count, &inner_norm_, scratch);
}

void Layer::FinishBehindNorms(const RowBlock& rows, const RowBlock& attended, int64_t count,
                              float* scratch) const {
  const RowBlock added{scratch + ElementsBeforeAdded(), options_.dim};
  const auto add = [&](const LayerNorm& norm) {
    norm.Set(added, added, count);
    AddRows(rows, count, options_.dim, added);
  };
  attention_.out().Set(added, attended, count);
  add(attended_norm_);
  std::fill_n(added.data, count * options_.dim, 0.0F);
  feed_forward_.Add(added, rows, count, Before(inner_norm_), scratch);
  add(outer_norm_);
}

}  // namespace linserve::llama
