#include "models/encoder/layer.h"

#include "attention/rows/aten.h"
#include "models/linformer/attention.h"

namespace linserve::encoder {
namespace {

std::variant<Attention, ProjectedAttention> AttentionOf(const Options& options) {
  if (!options.linformer()) return Attention(options);
  return linformer::MakeAttention({.dim = options.dim,
                                   .seq_len = options.seq_len,
                                   .k = options.k,
                                   .heads = options.heads,
                                   .dim_head = options.dim_head,
                                   .causal = options.causal});
}

}  // namespace

Layer::Layer(const Options& options)
    : attn_norm_(options.dim),
      attn_(AttentionOf(options)),
      ff_norm_(options.dim),
      ff_(options.dim, options.ff_mult * options.dim) {}

void Layer::Declare(const Scope& scope) {
  attn_norm_.Declare(scope / "attn_norm");
  std::visit([&](auto& attention) { attention.Declare(scope / "attn"); }, attn_);
  ff_norm_.Declare(scope / "ff_norm");
  ff_.Declare(scope / "ff");
}

void Layer::Apply(at::Tensor& rows, const Context& context) const {
  if (const auto* linformer = std::get_if<ProjectedAttention>(&attn_)) {
    return AddLinformer(*linformer, rows, context);
  }
  const auto& attention = std::get<Attention>(attn_);
  if (attention.WorksByBlocks(context)) {
    return attention.AddByBlocks(rows, attn_norm_, context, ff_.Step(rows, rows, &ff_norm_));
  }
  rows.add_(attention(attn_norm_(rows), context));
  ff_.AddTo(rows, rows, &ff_norm_);
}

void Layer::AddLinformer(const ProjectedAttention& attention, at::Tensor& rows,
                         const Context& context) const {
  const NormedRows queries{rows, &attn_norm_};
  NormedRows keys = queries;
  keys.visible = context.mask;
  const ProjectedAttention::Input input{queries, context.layout, keys, context.layout,
                                        context.rotation};
  if (attention.packed() && ff_.packed()) {
    return attention.AddByBlocks(rows, input, ff_.Step(rows, rows, &ff_norm_));
  }
  attention.AddTo(rows, input);
  ff_.AddTo(rows, rows, &ff_norm_);
}

double Layer::Flops(int64_t length) const {
  const double attention = std::holds_alternative<Attention>(attn_)
                               ? std::get<Attention>(attn_).Flops(length)
                               : std::get<ProjectedAttention>(attn_).Flops(length, length);
  return attention + static_cast<double>(ff_.Flops()) * static_cast<double>(length);
}

std::vector<StateSlot> Layer::State() const { return std::get<Attention>(attn_).State(); }

}  // namespace linserve::encoder
