#include "models/llama/attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "attention/device/device_plugin.h"
#include "attention/positions/positions.h"
#include "attention/products/block_product.h"
#include "attention/rows/aten.h"
#include "attention/rows/spans.h"

namespace linserve::llama {
namespace {

BlockAttention::Sizes SizesOf(const Options& options, const LayerKind& kind, DType products) {
  return {.heads = options.heads,
          .dim_head = options.dim_head,
          .products = products,
          .before = kind.before,
          .after = kind.after,
          .scale = options.scale,
          .key_heads = options.key_heads};
}

// Returns what is added to the scores of these sequences, as far as it broadcasts to [count, heads,
// length, length]; nullopt: nothing is.
std::optional<at::Tensor> AddedTo(const Span& span, const LayerKind& kind, const at::Tensor& mask,
                                  const at::TensorOptions& options) {
  constexpr double kHiddenInF16 = -3e4;  // which has no number that is less than twice that
  const double hidden = options.dtype() == at::kHalf ? kHiddenInF16 : BlockAttention::kHidden;
  at::Tensor added;
  const auto add = [&](const at::Tensor& scores) {
    added = added.defined() ? added + scores : scores;
  };
  if (mask.defined()) add(at::where(View(mask, span).unsqueeze(1).unsqueeze(1), 0.0, hidden));
  const at::Tensor places = at::arange(span.length, options.dtype(at::kLong));
  const at::Tensor distance = places - places.unsqueeze(1);  // from query to key
  // A query all of whose keys are hidden still sees none beyond its window.
  if (kind.before >= 0) add(at::where(distance >= -kind.before, 0.0, 2 * hidden));
  if (kind.after >= 0) add(at::where(distance <= kind.after, 0.0, 2 * hidden));
  if (!added.defined()) return std::nullopt;
  return added.to(options.dtype());
}

}  // namespace

Attention::Attention(const Options& options, const LayerKind& kind)
    : options_(options),
      kind_(kind),
      query_(options.dim, options.query_width(), options.query_bias),
      key_(options.dim, options.key_width(), options.query_bias),
      value_(options.dim, options.key_width(), options.query_bias),
      qkv_(options.dim, options.query_width() + 2 * options.key_width(), options.query_bias),
      out_(options.query_width(), options.dim, options.out_bias),
      query_norm_(LayerNorm::OfMeanSquare(options.dim_head, options.eps, options.norms_from_one)),
      key_norm_(query_norm_),
      blocks_(SizesOf(options, kind, DType::kF32)) {}

void Attention::Declare(const Scope& scope) {
  query_.DeclarePart(scope / "q_proj");
  key_.DeclarePart(scope / "k_proj");
  value_.DeclarePart(scope / "v_proj");
  if (options_.head_norms) {
    query_norm_.Declare(scope / "q_norm");
    key_norm_.Declare(scope / "k_norm");
  }
  scope.AfterLoading([this](DType products) { Prepare(products); });
  out_.Declare(scope / "o_proj");
  scope.Ignore("rotary_emb.inv_freq");  // which older files have
}

void Attention::Prepare(DType products) {
  // What is turned as pairs lies side by side.
  const auto pair = [](Linear& part, int64_t heads) {
    part.weight = ByPairs(part.weight, heads);
    if (part.with_bias) part.bias = ByPairs(part.bias, heads);
  };
  pair(query_, options_.heads);
  pair(key_, options_.key_heads);
  JoinParts(qkv_, {&query_, &key_, &value_});
  if (options_.head_norms) {
    for (LayerNorm* norm : {&query_norm_, &key_norm_}) norm->weight = ByPairs(norm->weight, 1);
  }
  qkv_.Pack(products);
  blocks_ = BlockAttention(SizesOf(options_, kind_, products));
}

double Attention::Flops(int64_t length) const {
  const auto rows = static_cast<double>(length);
  const auto reach = [length](int64_t side) {
    return static_cast<double>(side < 0 ? length : std::min(length, side));
  };
  double seen = std::min(rows, reach(kind_.before) + reach(kind_.after) + 1);
  if (kind_.before < 0 && kind_.after == 0) seen = (rows + 1) / 2;
  return rows * (static_cast<double>(qkv_.Flops() + out_.Flops()) +
                 4 * seen * static_cast<double>(options_.query_width()));
}

void Attention::Project(const RowBlock& rows, int64_t count, const RowBlock& qkv) const {
  qkv_.Set(qkv, rows, count);
  if (!options_.head_norms) return;
  for (int64_t head = 0; head < TurnedHeads(); ++head) {
    const LayerNorm& norm = head < options_.heads ? query_norm_ : key_norm_;
    const RowBlock own = qkv.Columns(head * options_.dim_head);
    norm.Set(own, own, count);
  }
}

void Attention::Turn(const RowBlock& qkv, int64_t place, int64_t count,
                     const Context& context) const {
  RotateRows(qkv, count, TurnedHeads(), options_.dim_head,
             BlockOf(context.rotations[kind_.rotary], place));
}

at::Tensor Attention::NormHeads(const at::Tensor& rows, const LayerNorm& norm) const {
  return norm(rows.unflatten(1, {-1, options_.dim_head})).flatten(1);
}

at::Tensor Attention::Attended(const at::Tensor& rows, const Context& context) const {
  const at::Tensor qkv = qkv_(rows);
  at::Tensor turned = qkv.narrow(1, 0, values());
  if (options_.head_norms) {
    turned = at::cat({NormHeads(qkv.narrow(1, 0, keys()), query_norm_),
                      NormHeads(qkv.narrow(1, keys(), options_.key_width()), key_norm_)},
                     1);
  } else {
    turned = turned.contiguous();
  }
  Rotate(turned, context.layout, TurnedHeads(), context.rotations[kind_.rotary]);
  const at::Tensor queries = turned.narrow(1, 0, keys());
  const at::Tensor new_keys = turned.narrow(1, keys(), options_.key_width());
  const at::Tensor new_values = qkv.narrow(1, values(), options_.key_width());
  at::Tensor together = AttendOnDevice(queries, new_keys, new_values, context);
  return together.defined() ? together : AttendBySpans(queries, new_keys, new_values, context);
}

// Returns an undefined tensor where the device has no kernel that takes these.
at::Tensor Attention::AttendOnDevice(const at::Tensor& queries, const at::Tensor& keys,
                                     const at::Tensor& values, const Context& context) const {
  const auto kernel = KernelsFor(queries).softmax_attention;
  if (kernel == nullptr || context.mask.defined() || !context.layout.table) return {};
  const double root = std::sqrt(static_cast<double>(options_.dim_head));
  return kernel({.queries = queries,
                 .keys = keys,
                 .values = values,
                 .heads = options_.heads,
                 .layout = *context.layout.table,
                 .scale = options_.scale > 0 ? options_.scale : 1 / root,
                 .window = kind_.before,
                 .causal = kind_.after == 0});
}

at::Tensor Attention::AttendBySpans(const at::Tensor& queries, const at::Tensor& keys,
                                    const at::Tensor& values, const Context& context) const {
  CheckNotRecording(context.layout);
  const at::Tensor attended =
      NewRows(context.layout, queries.size(0), options_.query_width(), queries.options());
  at::Tensor mask = context.mask;
  // A row that sees nothing would average the padding.
  const bool alone = mask.defined();
  const std::vector<Span> spans =
      alone ? Spans(context.layout) : SpansOfPadded(context.layout, context.layout, mask).first;
  // Padding is behind all rows that could see it.
  if (!alone && kind_.after == 0) mask.reset();
  const std::array whole = {queries.contiguous(), keys.contiguous(), values.contiguous()};
  const bool causal = !mask.defined() && kind_.before < 0 && kind_.after == 0;
  for (const Span& span : spans) {
    const auto heads = [&](const at::Tensor& rows, int64_t count) {
      return SplitHeads(View(rows, span), count);
    };
    const at::Tensor result = at::scaled_dot_product_attention(
        heads(whole[0], options_.heads), heads(whole[1], options_.key_heads),
        heads(whole[2], options_.key_heads),
        causal ? std::nullopt : AddedTo(span, kind_, mask, queries.options()), /*dropout_p=*/0.0,
        causal, options_.scale > 0 ? std::optional(options_.scale) : std::nullopt,
        /*enable_gqa=*/options_.heads != options_.key_heads);
    View(attended, span).copy_(JoinHeads(result));
  }
  return attended;
}

}  // namespace linserve::llama
