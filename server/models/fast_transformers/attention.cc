#include "models/fast_transformers/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "attention/linear/feature_attention.h"
#include "attention/positions/positions.h"
#include "attention/rows/aten.h"
#include "attention/rows/scratch.h"

namespace linserve::fast_transformers {
namespace {

BlockAttention SoftmaxOf(const AttentionOptions& options, DType products) {
  return BlockAttention({.heads = options.heads,
                         .dim_head = options.width,
                         .products = products,
                         .before = options.before,
                         .after = options.after,
                         .causal = options.causal,
                         .value_width = options.value_width,
                         .scale = options.scale});
}

}  // namespace

Source Source::Of(at::Tensor rows, PlacedLayout layout, const at::Tensor& mask) {
  return {std::move(rows), std::move(layout), mask, BlockAttention::ScoresOfKeys(mask)};
}

Attention::Attention(const AttentionOptions& options)
    : options_(options),
      query_(options.dim, options.heads * options.width),
      key_(options.source_dim, options.heads * options.width),
      value_(options.source_dim, options.heads * options.value_width),
      out_(options.heads * options.value_width, options.dim),
      features_(options.features, options.width, options.rotary),
      linear_({.heads = options.heads,
               .features = features_.features(),
               .value_width = options.value_width,
               .added = options.added,
               .floor = options.floor > 0 ? options.floor : std::numeric_limits<float>::lowest()}),
      softmax_(SoftmaxOf(options, DType::kF32)) {}

void Attention::Declare(const Scope& scope, const AttentionNames& names) {
  for (auto& [name, part] :
       {std::pair<std::string, Linear&>{names.query, query_}, {names.key, key_}}) {
    part.DeclareUnpacked(scope / name);
    scope.Packs(part.weight);
    scope.AfterLoading([this, &own = part](DType products) {
      if (options_.rotary) {
        own.weight = ByPairs(own.weight, options_.heads);
        own.bias = ByPairs(own.bias, options_.heads);
      }
      const FeatureMapOptions& features = options_.features;
      const bool exact =
          options_.linear && features.random && features.random->Magnifies(features.directions);
      own.Pack(exact ? DType::kF32 : products);
    });
  }
  value_.Declare(scope / names.value);
  if (options_.linear) features_.Declare(scope, names.directions);
  out_.Declare(scope / names.out);
  scope.AfterLoading([this](DType products) { softmax_ = SoftmaxOf(options_, products); });
}

double Attention::Flops(int64_t queries, int64_t keys) const {
  const auto rows = static_cast<double>(queries);
  const auto others = static_cast<double>(keys);
  const auto heads = static_cast<double>(options_.heads);
  const auto width = static_cast<double>(options_.width);
  const auto value_width = static_cast<double>(options_.value_width);
  const double linears = rows * static_cast<double>(query_.Flops() + out_.Flops()) +
                         others * static_cast<double>(key_.Flops() + value_.Flops());
  if (options_.linear) {
    const auto features = static_cast<double>(features_.features());
    const auto directions = static_cast<double>(options_.features.directions);
    return linears +
           heads * (rows + others) * 2 * (width * directions + features * (value_width + 1));
  }
  double seen = options_.before < 0 ? others : static_cast<double>(options_.before) + 1;
  if (options_.after > 0) seen += static_cast<double>(options_.after);
  if (options_.before < 0 && options_.causal) seen = others / 2;
  return linears + heads * rows * std::min(seen, others) * 2 * (width + value_width);
}

at::Tensor Attention::operator()(const at::Tensor& x, const PlacedLayout& layout,
                                 const Source& source, const at::Tensor& rotation) const {
  at::Tensor queries = query_(x);
  at::Tensor keys = key_(source.rows);
  const at::Tensor values = value_(source.rows);
  if (rotation.defined()) {
    Rotate(queries, layout, options_.heads, rotation);
    Rotate(keys, source.layout, options_.heads, rotation);
  }
  if (options_.linear && options_.features.stabilize) {  // by the largest of all rows
    queries = WithPaddingOfRows(queries, layout);
    keys = WithPaddingOfRows(keys, source.layout);
  }
  const at::Tensor attended = NewRows(layout, x.size(0), value_inner(), x.options());
  at::Tensor visible = source.mask;
  // A window ends where the sequence does, and a query that sees nothing averages all of it:
  // padding would count there.
  const bool alone = !options_.linear && (options_.before >= 0 || source.mask.defined());
  const SpanPairs spans =
      alone ? Spans(layout, source.layout) : SpansOfPadded(layout, source.layout, visible);
  for (size_t i = 0; i < spans.first.size(); ++i) {
    const auto heads = [&](const at::Tensor& rows, const Span& span) {
      return SplitHeads(View(rows, span), options_.heads);
    };
    const Span& own = spans.first[i];
    const Span& other = spans.second[i];
    at::Tensor mask;
    if (visible.defined()) mask = View(visible, other).unsqueeze(1);
    const at::Tensor own_queries = heads(queries, own);
    const at::Tensor own_keys = heads(keys, other);
    const at::Tensor own_values = heads(values, other);
    const at::Tensor result = options_.linear
                                  ? AttendLinearly(own_queries, own_keys, own_values, mask)
                                  : AttendBySoftmax(own_queries, own_keys, own_values, mask);
    View(attended, own).copy_(JoinHeads(result));
  }
  return out_(attended);
}

FeatureForm Attention::FormOf(const at::Tensor& queries, const at::Tensor& keys) const {
  FeatureForm form = features_.Form(queries, keys);
  form.added = options_.added;
  if (options_.floor > 0) form.floor = options_.floor;
  return form;
}

at::Tensor Attention::AttendLinearly(const at::Tensor& queries, at::Tensor keys, at::Tensor values,
                                     at::Tensor mask) const {
  const FeatureForm form = FormOf(queries, keys);
  const int64_t missing = queries.size(-2) - keys.size(-2);
  if (options_.causal && missing < 0) {
    keys = keys.narrow(-2, 0, queries.size(-2));
    values = values.narrow(-2, 0, queries.size(-2));
    if (mask.defined()) mask = mask.narrow(-1, 0, queries.size(-2));
  } else if (options_.causal && missing > 0) {
    // Queries behind the last key see all of them.
    if (!mask.defined()) mask = at::ones({keys.size(-2)}, keys.options().dtype(at::kBool));
    mask = at::constant_pad_nd(mask, {0, missing});
    keys = at::constant_pad_nd(keys, {0, 0, 0, missing});
    values = at::constant_pad_nd(values, {0, 0, 0, missing});
  }
  return FeatureAttention(queries, keys, values, {.mask = mask, .causal = options_.causal}, form);
}

at::Tensor Attention::AttendBySoftmax(const at::Tensor& queries, const at::Tensor& keys,
                                      const at::Tensor& values, const at::Tensor& mask) const {
  const bool all_visible = options_.before < 0 && !options_.causal && !mask.defined();
  // LibTorch makes all scores at once where the widths are unequal.
  if (all_visible && options_.width == options_.value_width) {
    return Scored(queries, keys, values, {});
  }
  std::vector<int64_t> shape = queries.sizes().vec();
  shape.back() = values.size(-1);
  at::Tensor result = at::empty(shape, queries.options());
  const int64_t rows = queries.size(-2);
  const int64_t most =
      CountAtOnce(queries.size(0) * queries.size(1) * keys.size(-2), queries.is_cpu());
  for (int64_t row = 0; row < rows; row += most) {
    const int64_t count = std::min(most, rows - row);
    result.narrow(-2, row, count)
        .copy_(AttendToVisible(queries.narrow(-2, row, count), row, keys, values, mask));
  }
  return result;
}

// Attends from queries, the first of which is row `row`. One that sees nothing averages what is
// near: its own scores must not count then, and zeros in its place give equal ones, in any type.
at::Tensor Attention::AttendToVisible(const at::Tensor& queries, int64_t row,
                                      const at::Tensor& keys, const at::Tensor& values,
                                      const at::Tensor& mask) const {
  const at::TensorOptions places = queries.options().dtype(at::kLong);
  const at::Tensor own = at::arange(row, row + queries.size(-2), places).unsqueeze(1);
  const at::Tensor distance = at::arange(keys.size(-2), places) - own;  // from the query
  at::Tensor near = at::ones_like(distance, at::kBool);
  if (options_.before >= 0) near.logical_and_(distance >= -options_.before);
  if (options_.after >= 0) near.logical_and_(distance <= options_.after);
  at::Tensor visible = options_.causal ? near.logical_and(distance <= 0) : near;
  if (mask.defined()) visible = visible.logical_and(mask.unsqueeze(1));
  const at::Tensor blind = visible.any(-1, /*keepdim=*/true).logical_not();
  at::Tensor result = Scored(queries.masked_fill(blind, 0), keys, values,
                             visible.logical_or(near.logical_and(blind)));
  if (options_.before < 0) return result;
  // Such a query's window has zeros outside the sequence.
  const at::Tensor shares = near.sum(-1, /*keepdim=*/true).to(result.scalar_type()) /
                            static_cast<double>(options_.before + options_.after + 1);
  return at::where(blind, result * shares, result);
}

at::Tensor Attention::Scored(const at::Tensor& queries, const at::Tensor& keys,
                             const at::Tensor& values,
                             const std::optional<at::Tensor>& open) const {
  const double scale =
      options_.scale > 0 ? options_.scale : 1 / std::sqrt(static_cast<double>(options_.width));
  return at::scaled_dot_product_attention(queries, keys, values, open, /*dropout_p=*/0,
                                          /*is_causal=*/false, scale);
}

}  // namespace linserve::fast_transformers
