#include "models/transformers/attention.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "attention/device/device_plugin.h"
#include "attention/landmarks/landmark_attention.h"
#include "attention/positions/positions.h"
#include "attention/products/block_product.h"
#include "attention/rows/aten.h"
#include "attention/rows/attention_rows.h"
#include "attention/rows/spans.h"
#include "models/transformers/names.h"

namespace linserve::transformers {
namespace {

// Returns what is added to the scores of these sequences, as far as it broadcasts to [count, heads,
// length, length]; nullopt: nothing is.
std::optional<at::Tensor> AddedTo(const Span& span, const LayerKind& kind, int64_t dim_head,
                                  const at::Tensor& mask, const Context& context,
                                  const at::TensorOptions& options) {
  at::Tensor added;
  const auto add = [&](const at::Tensor& scores) {
    added = added.defined() ? added + scores : scores;
  };
  constexpr double kHiddenInF16 = -6e4;  // which has no number that is less
  const double hidden = options.dtype() == at::kHalf ? kHiddenInF16 : BlockAttention::kHidden;
  const auto hide = [&](const at::Tensor& visible) { add(at::where(visible, 0.0, hidden)); };
  const at::Tensor places = at::arange(span.length, options.dtype(at::kLong));
  const at::Tensor distance = places - places.unsqueeze(1);  // from query to key
  if (mask.defined()) hide(View(mask, span).unsqueeze(1).unsqueeze(1));
  if (kind.window >= 0) hide(distance.abs() <= kind.window);
  if (context.distances.defined()) {
    const int64_t same = context.distances.size(1) / 2;
    add(context.distances.index_select(1, (distance + same).flatten())
            .div(std::sqrt(static_cast<double>(dim_head)))
            .view({-1, span.length, span.length}));
  }
  if (!added.defined()) return std::nullopt;
  return added.to(options.dtype());
}

}  // namespace

Attention::Attention(const Options& options, const LayerKind& kind)
    : options_(options),
      kind_(kind),
      query_(options.dim, options.dim, options.attention_bias),
      key_(options.dim, options.dim, options.attention_bias),
      value_(options.dim, options.dim, options.attention_bias),
      qkv_(options.dim, 3 * options.dim, options.attention_bias),
      out_(options.dim, options.dim, options.attention_bias),
      blocks_({.heads = options.heads,
               .dim_head = options.dim_head(),
               .before = kind.window,
               .after = kind.window}) {}

void Attention::Declare(const Scope& layer) {
  const Names& names = NamesOf(options_.family);
  if (names.joined != nullptr) {
    qkv_.DeclareUnpacked(layer / names.joined);
    layer.Packs(qkv_.weight);
  } else {
    for (auto& [name, part] : {std::pair<const char*, Linear&>{names.query, query_},
                               {names.key, key_},
                               {names.value, value_}}) {
      part.DeclareUnpacked(layer / name);
      layer.Packs(part.weight);
    }
  }
  layer.AfterLoading([this](DType products) { Prepare(products); });
  if (options_.landmarks.kernel > 0) {
    (layer / names.convolution)
        .Declare("weight", convolution_, {options_.heads, 1, options_.landmarks.kernel, 1},
                 Init::kUniform);
  }
  out_.Declare(layer / names.out);
}

void Attention::Join() {
  if (qkv_.weight.defined()) return;
  qkv_.weight = at::cat({query_.weight, key_.weight, value_.weight});
  if (qkv_.with_bias) qkv_.bias = at::cat({query_.bias, key_.bias, value_.bias});
  for (Linear* part : {&query_, &key_, &value_}) {
    part->weight.reset();
    part->bias.reset();
  }
}

void Attention::Prepare(DType products) {
  Join();
  if (kind_.theta > 0) {
    const auto turned = [this](const at::Tensor& joined) {
      const std::vector<at::Tensor> parts = joined.chunk(3);
      return at::cat(
          {ByPairs(parts[0], options_.heads), ByPairs(parts[1], options_.heads), parts[2]});
    };
    qkv_.weight = turned(qkv_.weight);
    if (qkv_.with_bias) qkv_.bias = turned(qkv_.bias);
  }
  qkv_.Pack(products);
  if (convolution_.defined() && qkv_.packed) block_convolution_ = BlockConvolution(convolution_);
  blocks_ = BlockAttention({.heads = options_.heads,
                            .dim_head = options_.dim_head(),
                            // The pseudo-inverse magnifies what is rounded.
                            .products = by_landmarks() ? DType::kF32 : products,
                            .before = kind_.window,
                            .after = kind_.window});
}

double Attention::Flops(int64_t length) const {
  const auto rows = static_cast<double>(length);
  const auto dim = static_cast<double>(options_.dim);
  const auto linear = static_cast<double>(qkv_.Flops() + out_.Flops()) +
                      2 * static_cast<double>(options_.landmarks.kernel) * dim;
  if (by_landmarks()) {
    constexpr double kProducts = 24;  // of the pseudo-inverse
    const auto landmarks = static_cast<double>(options_.landmarks.count);
    return rows * (linear + 8 * landmarks * dim) +
           2 * landmarks * landmarks *
               (2 * dim + kProducts * landmarks * static_cast<double>(options_.heads));
  }
  const auto seen =
      static_cast<double>(kind_.window < 0 ? length : std::min(length, 2 * kind_.window + 1));
  return rows * (linear + 4 * seen * dim);
}

void Attention::AddConvolved(const RowBlock& qkv, int64_t length, int64_t place, int64_t count,
                             const RowBlock& attended) const {
  if (!convolution_.defined()) return;
  block_convolution_.Add(qkv.Columns(2 * options_.dim), length, place, count, options_.dim_head(),
                         attended);
}

void Attention::Rotate(const RowBlock& qkv, int64_t place, int64_t count,
                       const Context& context) const {
  if (kind_.theta == 0) return;
  // Queries and keys lie side by side: they are twice as many heads.
  RotateRows(qkv, count, 2 * options_.heads, options_.dim_head(),
             BlockOf(context.rotations.at(kind_.theta), place));
}

BlockAttention::Scores Attention::ScoresOf(int64_t start, const Context& context) const {
  BlockAttention::Scores scores;
  if (context.key_scores.defined()) {
    scores.of_keys = context.key_scores.const_data_ptr<float>() + start;
  }
  if (context.distances.defined()) {
    scores.distances = context.distances.size(1);
    scores.of_distances = context.distances.const_data_ptr<float>() + scores.distances / 2;
  }
  return scores;
}

// Returns an undefined tensor where the device has no kernel that takes these.
at::Tensor Attention::AttendOnDevice(const at::Tensor& queries, const at::Tensor& keys,
                                     const at::Tensor& values, const Context& context) const {
  const auto kernel = KernelsFor(queries).softmax_attention;
  const bool plain = !context.mask.defined() && !context.distances.defined() &&
                     !convolution_.defined() && !by_landmarks();
  if (kernel == nullptr || !plain || !context.layout.table) return {};
  return kernel({.queries = queries,
                 .keys = keys,
                 .values = values,
                 .heads = options_.heads,
                 .layout = *context.layout.table,
                 .window = kind_.window});
}

at::Tensor Attention::Attended(const at::Tensor& rows, const Context& context) const {
  const at::Tensor qkv = qkv_(rows);
  at::Tensor turned = qkv.narrow(1, 0, 2 * options_.dim);
  if (kind_.theta > 0) {
    turned = turned.contiguous();
    linserve::Rotate(turned, context.layout, 2 * options_.heads, context.rotations.at(kind_.theta));
  }
  at::Tensor queries = turned.narrow(1, 0, options_.dim);
  at::Tensor keys = turned.narrow(1, options_.dim, options_.dim);
  at::Tensor values = qkv.narrow(1, 2 * options_.dim, options_.dim);
  at::Tensor together = AttendOnDevice(queries, keys, values, context);
  if (together.defined()) return together;
  CheckNotRecording(context.layout);
  for (at::Tensor* part : {&queries, &keys, &values}) *part = part->contiguous();
  const at::Tensor attended = NewRows(context.layout, rows.size(0), options_.dim, rows.options());
  at::Tensor mask = context.mask;
  // A convolution would reach into the padding, and a row that sees nothing would average it.
  const bool alone = convolution_.defined() || context.mask.defined();
  const std::vector<Span> spans =
      alone ? Spans(context.layout) : SpansOfPadded(context.layout, context.layout, mask).first;
  for (const Span& span : spans) {
    const auto heads = [&](const at::Tensor& all) {
      const at::Tensor split = SplitHeads(View(all, span), options_.heads);
      // The pseudo-inverse magnifies what is rounded.
      return by_landmarks() ? split.to(SumType(split)) : split;
    };
    const at::TensorOptions scores = heads(queries).options();
    const auto added = AddedTo(span, kind_, options_.dim_head(), mask, context, scores);
    at::Tensor result =
        by_landmarks()
            ? LandmarkAttention(heads(queries), heads(keys), heads(values),
                                added.value_or(at::Tensor()), options_.landmarks.count,
                                options_.landmarks.by_head)
            : at::scaled_dot_product_attention(heads(queries), heads(keys), heads(values), added);
    if (convolution_.defined()) {
      result = result + ConvolveRows(SplitHeads(View(values, span), options_.heads), convolution_);
    }
    View(attended, span).copy_(JoinHeads(result));
  }
  return attended;
}

}  // namespace linserve::transformers
