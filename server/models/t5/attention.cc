#include "models/t5/attention.h"

#include <vector>

#include "attention/device/device_plugin.h"
#include "attention/positions/distances.h"
#include "attention/rows/aten.h"
#include "attention/rows/scored_attention.h"
#include "attention/rows/spans.h"
#include "models/t5/rows_in_f16.h"

namespace linserve::t5 {
namespace {

constexpr double kScale = 1;  // of scores

BlockAttention::Sizes BlockSizesOf(const Options& options, DType products) {
  return {
      .heads = options.heads, .dim_head = options.dim_head, .products = products, .scale = kScale};
}

}  // namespace

Attention::Attention(const Options& options, int64_t layer)
    : options_(options),
      place_(options.own_tables ? static_cast<size_t>(layer) : 0),
      has_table_(options.own_tables || layer == 0),
      query_(options.dim, options.width(), /*biased=*/false),
      key_(query_),
      value_(query_),
      qkv_(options.dim, 3 * options.width(), /*biased=*/false),
      out_(options.width(), options.dim, /*biased=*/false),
      blocks_(BlockSizesOf(options, DType::kF32)) {}

void Attention::Declare(const Scope& scope) {
  query_.DeclarePart(scope / "q");
  key_.DeclarePart(scope / "k");
  value_.DeclarePart(scope / "v");
  scope.AfterLoading([this](DType products) {
    JoinParts(qkv_, {&query_, &key_, &value_});
    qkv_.Pack(products);
    blocks_ = BlockAttention(BlockSizesOf(options_, products));
  });
  out_.Declare(scope / "o");
  scope.AfterLoading([this](DType) { ShrinkInF16({&out_.weight}, {}); });
  if (!has_table_) return;
  (scope / "relative_attention_bias")
      .Declare("weight", table_, {options_.buckets, options_.heads}, Init::kNormal);
}

double Attention::Flops(int64_t length) const {
  const auto rows = static_cast<double>(length);
  return rows * (static_cast<double>(qkv_.Flops() + out_.Flops()) +
                 4 * rows * static_cast<double>(options_.width()));
}

at::Tensor Attention::Distances(int64_t longest) const {
  if (!has_table_) return {};
  return ByDistance(table_.to(at::kFloat), longest + kDistancesBeyond, options_.furthest);
}

BlockAttention::Scores Attention::ScoresOf(int64_t start, const Context& context) const {
  const at::Tensor& distances = context.distances[place_];
  BlockAttention::Scores scores;
  if (context.key_scores.defined()) {
    scores.of_keys = context.key_scores.const_data_ptr<float>() + start;
  }
  scores.distances = distances.size(1);
  scores.of_distances = distances.const_data_ptr<float>() + scores.distances / 2;
  return scores;
}

// Returns an undefined tensor where the device has no kernel that takes these.
at::Tensor Attention::AttendOnDevice(const std::vector<at::Tensor>& parts,
                                     const Context& context) const {
  const auto kernel = KernelsFor(parts[0]).softmax_attention;
  if (kernel == nullptr || context.mask.defined() || !context.layout.table) return {};
  return kernel({.queries = parts[0],
                 .keys = parts[1],
                 .values = parts[2],
                 .heads = options_.heads,
                 .layout = *context.layout.table,
                 .scale = kScale,
                 .distances = context.distances[place_]});
}

at::Tensor Attention::Attended(const at::Tensor& rows, const Context& context) const {
  std::vector<at::Tensor> parts = qkv_(rows).chunk(3, 1);
  at::Tensor together = AttendOnDevice(parts, context);
  if (together.defined()) return together;
  CheckNotRecording(context.layout);
  for (at::Tensor& part : parts) part = part.contiguous();
  const at::Tensor attended =
      NewRows(context.layout, rows.size(0), options_.width(), rows.options());
  at::Tensor mask = context.mask;
  // A row that sees nothing would average the padding.
  const std::vector<Span> spans = mask.defined()
                                      ? Spans(context.layout)
                                      : SpansOfPadded(context.layout, context.layout, mask).first;
  for (const Span& span : spans) {
    const auto heads = [&](size_t part) {
      return SplitHeads(View(parts[part], span), options_.heads);
    };
    View(attended, span)
        .copy_(JoinHeads(
            AttendSpan(span, heads(0), heads(1), heads(2), mask, context.distances[place_])));
  }
  return attended;
}

at::Tensor Attention::AttendSpan(const Span& span, const at::Tensor& queries,
                                 const at::Tensor& keys, const at::Tensor& values,
                                 const at::Tensor& mask, const at::Tensor& distances) const {
  at::Tensor of_keys;
  if (mask.defined()) {
    of_keys = ScoresOfVisible(View(mask, span).unsqueeze(1).unsqueeze(1), queries.scalar_type());
  }
  const int64_t matrices = options_.heads * (mask.defined() ? span.count : 1);
  return AttendByParts(queries, keys, values, kScale, matrices, [&](int64_t first, int64_t count) {
    const at::Tensor added = ScoresByDistance(distances, first, count, span.length);
    return (of_keys.defined() ? added + of_keys : added).to(queries.scalar_type());
  });
}

}  // namespace linserve::t5
