#include "models/llama/attention.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "attention/device/device_plugin.h"
#include "attention/positions/positions.h"
#include "attention/products/block_product.h"
#include "attention/rows/aten.h"
#include "attention/rows/scored_attention.h"
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
          .cap = options.score_cap,
          .key_heads = options.key_heads,
          .blank = true};
}

// Makes the norm of queries, or keys, of this width.
LayerNorm NormOf(const Options& options, int64_t width) {
  const bool each = options.head_norms != HeadNorms::kAll;
  return LayerNorm::OfMeanSquare(each ? options.dim_head : width, options.eps,
                                 options.norms_from_one);
}

// Says which keys queries of these sequences see, as far as it broadcasts to [count, heads, length,
// length]; undefined: all.
at::Tensor VisibleIn(const Span& span, const LayerKind& kind, const at::Tensor& mask,
                     const at::Device& device) {
  at::Tensor visible;
  const auto also = [&](const at::Tensor& others) {
    visible = visible.defined() ? visible.logical_and(others) : others;
  };
  if (mask.defined()) also(View(mask, span).unsqueeze(1).unsqueeze(1));
  const at::Tensor places = at::arange(span.length, at::TensorOptions(device).dtype(at::kLong));
  const at::Tensor distance = (places - places.unsqueeze(1)).unsqueeze(0).unsqueeze(0);
  if (kind.before >= 0) also(distance >= -kind.before);
  if (kind.after >= 0) also(distance <= kind.after);
  return visible;
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
      query_norm_(NormOf(options, options.query_width())),
      key_norm_(NormOf(options, options.key_width())),
      blocks_(SizesOf(options, kind, DType::kF32)) {}

void Attention::Declare(const Scope& scope) {
  if (options_.joined) {
    qkv_.DeclarePart(scope / "qkv_proj");
  } else {
    query_.DeclarePart(scope / "q_proj");
    key_.DeclarePart(scope / "k_proj");
    value_.DeclarePart(scope / "v_proj");
  }
  if (options_.head_norms != HeadNorms::kNone) {
    query_norm_.Declare(scope / options_.names.query_norm);
    key_norm_.Declare(scope / options_.names.key_norm);
  }
  scope.AfterLoading([this](DType products) { Prepare(products); });
  out_.factor = options_.added_factor;
  out_.Declare(scope / options_.names.out);
  scope.Ignore("rotary_emb.inv_freq");  // which older files have
}

at::Tensor Attention::Paired(const at::Tensor& outputs, int64_t heads) const {
  const int64_t turned = options_.turned();
  const int64_t others = options_.dim_head - turned;
  if (others == 0) return ByPairs(outputs, heads);
  const at::Tensor split = outputs.unflatten(0, {heads, options_.dim_head});
  const at::Tensor pairs = ByPairs(split.narrow(1, 0, turned).flatten(0, 1), heads);
  return at::cat({pairs.unflatten(0, {heads, turned}), split.narrow(1, turned, others)}, 1)
      .flatten(0, 1);
}

void Attention::Prepare(DType products) {
  if (!options_.joined) JoinParts(qkv_, {&query_, &key_, &value_});
  const auto pair = [this](at::Tensor& outputs) {
    outputs = at::cat({Paired(outputs.narrow(0, 0, keys()), options_.heads),
                       Paired(outputs.narrow(0, keys(), options_.key_width()), options_.key_heads),
                       outputs.narrow(0, values(), options_.key_width())});
  };
  pair(qkv_.weight);
  if (qkv_.with_bias) pair(qkv_.bias);
  if (options_.head_norms != HeadNorms::kNone) {
    for (LayerNorm* norm : {&query_norm_, &key_norm_}) {
      norm->weight = Paired(norm->weight, norm->width / options_.dim_head);
    }
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
  if (options_.head_norms == HeadNorms::kNone) return;
  if (options_.head_norms == HeadNorms::kAll) {
    query_norm_.Set(qkv, qkv, count);
    return key_norm_.Set(qkv.Columns(keys()), qkv.Columns(keys()), count);
  }
  for (int64_t head = 0; head < TurnedHeads(); ++head) {
    const LayerNorm& norm = head < options_.heads ? query_norm_ : key_norm_;
    const RowBlock own = qkv.Columns(head * options_.dim_head);
    norm.Set(own, own, count);
  }
}

void Attention::Turn(const RowBlock& qkv, int64_t place, int64_t count,
                     const Context& context) const {
  if (!kind_.turned) return;
  RotateRows(qkv, count, TurnedHeads(), options_.dim_head,
             BlockOf(context.rotations[kind_.rotary], place));
}

at::Tensor Attention::NormHeads(const at::Tensor& rows, const LayerNorm& norm) const {
  if (options_.head_norms == HeadNorms::kAll) return norm(rows);
  return norm(rows.unflatten(1, {-1, options_.dim_head})).flatten(1);
}

at::Tensor Attention::Attended(const at::Tensor& rows, const Context& context) const {
  const at::Tensor qkv = qkv_(rows);
  at::Tensor turned = qkv.narrow(1, 0, values());
  if (options_.head_norms != HeadNorms::kNone) {
    turned = at::cat({NormHeads(qkv.narrow(1, 0, keys()), query_norm_),
                      NormHeads(qkv.narrow(1, keys(), options_.key_width()), key_norm_)},
                     1);
  } else if (kind_.turned) {
    turned = turned.contiguous();
  }
  if (kind_.turned) {
    Rotate(turned, context.layout, TurnedHeads(), context.rotations[kind_.rotary]);
  }
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
  const bool plain = !context.mask.defined() && options_.score_cap == 0;
  if (kernel == nullptr || !plain || !context.layout.table) return {};
  return kernel({.queries = queries,
                 .keys = keys,
                 .values = values,
                 .heads = options_.heads,
                 .layout = *context.layout.table,
                 .scale = options_.scale,
                 .window = kind_.before,
                 .causal = kind_.after == 0});
}

at::Tensor Attention::AttendBySpans(const at::Tensor& queries, const at::Tensor& keys,
                                    const at::Tensor& values, const Context& context) const {
  CheckNotRecording(context.layout);
  const at::Tensor attended =
      NewRows(context.layout, queries.size(0), options_.query_width(), queries.options());
  at::Tensor mask = context.mask;
  const bool alone = mask.defined();
  const std::vector<Span> spans =
      alone ? Spans(context.layout) : SpansOfPadded(context.layout, context.layout, mask).first;
  // Padding is behind all rows that could see it.
  if (!alone && kind_.after == 0) mask.reset();
  const std::array whole = {queries.contiguous(), keys.contiguous(), values.contiguous()};
  for (const Span& span : spans) {
    const auto heads = [&](const at::Tensor& rows, int64_t count) {
      return SplitHeads(View(rows, span), count);
    };
    const at::Tensor result =
        AttendSpan(span, heads(whole[0], options_.heads), heads(whole[1], options_.key_heads),
                   heads(whole[2], options_.key_heads), mask);
    View(attended, span).copy_(JoinHeads(result));
  }
  return attended;
}

at::Tensor Attention::AttendSpan(const Span& span, const at::Tensor& queries,
                                 const at::Tensor& keys, const at::Tensor& values,
                                 const at::Tensor& mask) const {
  const bool capped = options_.score_cap > 0;
  const bool causal = !capped && !mask.defined() && kind_.before < 0 && kind_.after == 0;
  const at::Tensor visible = causal ? at::Tensor() : VisibleIn(span, kind_, mask, queries.device());
  at::Tensor result;
  if (capped) {
    result = AttendCapped(queries, keys, values, options_.scale, options_.score_cap, visible);
  } else {
    std::optional<at::Tensor> added;
    if (visible.defined()) {
      added = ScoresOfVisible(visible, queries.scalar_type()).to(queries.scalar_type());
    }
    result = at::scaled_dot_product_attention(queries, keys, values, added, /*dropout_p=*/0.0,
                                              causal, options_.scale,
                                              /*enable_gqa=*/options_.heads != options_.key_heads);
  }
  if (!mask.defined()) return result;
  const at::Tensor blind = SeeAny(View(mask, span), kind_.before, kind_.after).logical_not();
  return result.masked_fill(blind.unsqueeze(1).unsqueeze(-1), 0);
}

}  // namespace linserve::llama
