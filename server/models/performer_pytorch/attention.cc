#include "models/performer_pytorch/attention.h"

#include <cmath>
#include <limits>

#include "attention/linear/linear_attention.h"
#include "attention/local/local_attention.h"
#include "attention/positions/positions.h"
#include "attention/positions/rotary_frequencies.h"
#include "attention/rows/aten.h"

namespace linserve::performer_pytorch {
namespace {

RandomFeatures FeaturesOf(const Options& options) {
  const bool generalized = options.kernel == Options::Kernel::kGeneralized;
  RandomFeatures features;
  features.map = generalized ? RandomFeatures::Map::kKernel : RandomFeatures::Map::kPositive;
  features.scale = std::pow(static_cast<double>(options.dim_head), -0.25);
  features.ratio = generalized ? 1 : 1 / std::sqrt(static_cast<double>(options.nb_features));
  features.eps = generalized ? 1e-3 : 1e-4;
  features.kernel = options.kernel_fn;
  features.heads_share_shift = options.heads_share_shift;
  return features;
}

}  // namespace

Attention::Attention(const Options& options, int64_t local_heads, bool crossing)
    : options_(options),
      local_heads_(local_heads),
      causal_(options.causal && !crossing),
      to_q_(options.dim, options.heads * options.dim_head, options.qkv_bias),
      to_k_(options.dim, options.heads * options.dim_head, options.qkv_bias),
      to_v_(options.dim, options.heads * options.dim_head, options.qkv_bias),
      to_out_(options.heads * options.dim_head, options.dim, options.attn_out_bias),
      features_(FeaturesOf(options)) {}

void Attention::Declare(const Scope& scope) {
  const bool exact =
      options_.kernel != Options::Kernel::kSoftmaxed && features_.Magnifies(options_.nb_features);
  to_q_.Declare(scope / "to_q", exact);
  to_k_.Declare(scope / "to_k", exact);
  to_v_.Declare(scope / "to_v");
  to_out_.Declare(scope / "to_out");
  (scope / "fast_attention")
      .Declare("projection_matrix", features_.projection, {options_.nb_features, options_.dim_head},
               Init::kStandard, ParameterKind::kDrawn);
  scope.AfterLoading([this](DType products) {
    if (!WorksByBlocks()) return;
    block_features_ = StabilizedFeatures(features_);
    if (local_heads_ == 0) return;
    local_ = BlockLocalAttention({.heads = local_heads_,
                                  .dim_head = options_.dim_head,
                                  .window = options_.local_window_size,
                                  .causal = causal_,
                                  .products = products});
  });
  if (local_heads_ == 0) return;
  const int64_t width = options_.dim_head;
  (scope / "local_attn" / "rel_pos")
      .DeclareBuffer("inv_freq", inverse_frequencies_, {width / 2},
                     [width] { return FrequenciesOf({}, width); });
}

at::Tensor Attention::Global(const at::Tensor& columns) const {
  return columns.narrow(-1, 0, global_heads() * options_.dim_head);
}

at::Tensor Attention::Forward(const at::Tensor& x, const PlacedLayout& layout,
                              const at::Tensor& source, const MaskedLayout& source_layout,
                              const at::Tensor& rotary) const {
  const at::Tensor queries = to_q_(x);
  at::Tensor keys = to_k_(source);
  at::Tensor values = to_v_(source);
  if (rotary.defined() && global_heads() > 0) {
    at::Tensor turned = Global(queries);
    Rotate(turned, layout, global_heads(), rotary);
    turned = Global(keys);
    Rotate(turned, source_layout.layout, global_heads(), rotary);
  }
  if (source_layout.mask.defined()) {
    Global(values).masked_fill_(source_layout.mask.logical_not().unsqueeze(-1), 0);
  }
  const at::Tensor attended = NewRows(layout, queries.size(0), queries.size(1), queries.options());
  keys = WithPaddingOfRows(keys, source_layout.layout);  // they are shifted by the largest
  at::Tensor there;
  const SpanPairs spans = local_heads_ > 0 ? Spans(layout, source_layout.layout)
                                           : SpansOfPadded(layout, source_layout.layout, there);
  for (size_t i = 0; i < spans.first.size(); ++i) {
    const Span& own = spans.first[i];
    const Span& other = spans.second[i];
    const auto heads = [&](int64_t first, int64_t count) {
      const auto part = [&](const at::Tensor& rows, const Span& span) {
        return SplitHeads(View(rows, span), options_.heads).narrow(1, first, count);
      };
      return Heads{part(queries, own), part(keys, other), part(values, other), part(attended, own)};
    };
    if (global_heads() > 0) {
      AttendGlobally(heads(0, global_heads()),
                     there.defined() ? View(there, other).unsqueeze(1) : there);
    }
    if (local_heads_ == 0) continue;
    const at::Tensor& mask = source_layout.mask;
    AttendLocally(heads(global_heads(), local_heads_), mask.defined() ? View(mask, other) : mask);
  }
  return to_out_(attended);
}

at::Tensor Attention::ShiftOf(const at::Tensor& keys) const {
  const bool shifted = features_.map == RandomFeatures::Map::kPositive;
  return shifted ? features_.Largest(keys) : at::Tensor();
}

FeatureForm Attention::FormWith(const at::Tensor& shift) const {
  return {.queries = [this](const at::Tensor& rows) { return features_.OfShiftedRows(rows); },
          .keys = [this, shift](const at::Tensor& rows) { return features_.Of(rows, shift); },
          .floor = std::numeric_limits<float>::lowest()};
}

void Attention::AttendGlobally(const Heads& heads, const at::Tensor& there) const {
  const auto& [queries, keys, values, out] = heads;
  if (is_softmaxed() && causal_) {
    CausalState state;
    return CausalLinearAttention(queries, keys, values, there, /*bucket=*/1, state, out, kDivisor);
  }
  if (is_softmaxed()) {
    LinearAttention(queries, keys, values, there, out);
    out.mul_(std::sqrt(static_cast<double>(options_.dim_head)));
    return;
  }
  const FeatureForm form = FormWith(ShiftOf(keys));
  if (!causal_) {
    out.copy_(FeatureAttention(queries, keys, values, {.mask = there, .causal = false}, form));
    return;
  }
  FeatureState state;
  std::vector<int64_t> shape = keys.sizes().vec();
  shape[2] = features_.features();
  state.values = at::zeros(shape, values.options().dtype(at::kFloat));
  shape[3] = 1;
  state.weights = at::full(shape, kAdded, values.options().dtype(at::kFloat));
  out.copy_(ContinueFeatureAttention(queries, keys, values, there, form, state));
}

at::Tensor Attention::TurnedHalves(const at::Tensor& rows, const at::Tensor& positions) const {
  const std::vector<at::Tensor> turns = Sinusoid(positions, inverse_frequencies_).chunk(2, -1);
  const at::Tensor& sine = turns[0];
  const at::Tensor& cosine = turns[1];
  const std::vector<at::Tensor> halves = rows.to(at::kFloat).chunk(2, -1);
  return at::cat({halves[0] * cosine - halves[1] * sine, halves[1] * cosine + halves[0] * sine},
                 -1);
}

void Attention::AttendLocally(const Heads& heads, const at::Tensor& mask) const {
  const int64_t window = options_.local_window_size;
  const int64_t length = heads.keys.size(2);
  const int64_t missing = (window - length % window) % window;
  // The package fills up the last window with keys and values of zeros, which are seen where there
  // is no mask. Not causal, its queries stand one window further than its keys.
  const auto filled = [&](const at::Tensor& rows) {
    return missing > 0 ? at::constant_pad_nd(rows, {0, 0, 0, missing}) : rows;
  };
  const at::Tensor places = at::arange(length, heads.keys.options().dtype(at::kLong));
  const at::Tensor queries = TurnedHalves(heads.queries, causal_ ? places : places + window);
  at::Tensor visible = mask;
  if (mask.defined()) visible = at::constant_pad_nd(mask, {0, missing}).unsqueeze(1);
  LocalAttention(queries, filled(TurnedHalves(heads.keys, places)), filled(heads.values), visible,
                 window, causal_, heads.out);
}

double Attention::Flops(int64_t queries, int64_t keys) const {
  const auto width = static_cast<double>(options_.dim_head);
  const auto global = static_cast<double>(global_heads());
  const auto features = is_softmaxed() ? width : static_cast<double>(options_.nb_features);
  // Each row is projected to its features; each key adds to Σ k vᵀ and Σ k, and each query is
  // multiplied by these sums.
  const double projected = is_softmaxed() ? 0 : 2 * width * features;
  const double per_row = global * (projected + 2 * features * (width + 1));
  const double per_query = static_cast<double>(to_q_.Flops() + to_out_.Flops()) + per_row;
  const double per_key = static_cast<double>(to_k_.Flops() + to_v_.Flops()) + per_row;
  double flops = static_cast<double>(queries) * per_query + static_cast<double>(keys) * per_key;
  if (local_heads_ > 0) {
    flops += 4 * static_cast<double>(local_heads_) * width *
             LocalAttentionPairs(queries, options_.local_window_size, causal_);
  }
  return flops;
}

}  // namespace linserve::performer_pytorch
