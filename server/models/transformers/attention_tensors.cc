#include <algorithm>
#include <cmath>
#include <vector>

#include "attention/device/device_plugin.h"
#include "attention/landmarks/landmark_attention.h"
#include "attention/positions/distances.h"
#include "attention/positions/positions.h"
#include "attention/rows/aten.h"
#include "attention/rows/attention_rows.h"
#include "attention/rows/scored_attention.h"
#include "attention/rows/spans.h"
#include "models/transformers/attention.h"
#include "models/transformers/global_tokens/attend_with_globals.h"

namespace linserve::transformers {
namespace {

// Says which rows of a span ask, those of each sequence from `first` on.
struct Asked {
  int64_t first;
  int64_t count;
};

// Returns what is added to the scaled scores of these sequences, as far as it broadcasts to [count,
// heads, asked, length]: `relative` and what comes besides; undefined: nothing is.
at::Tensor AddedTo(const Span& span, const Asked& asked, const Options& options, int64_t window,
                   const at::Tensor& mask, const at::Tensor& relative, const Context& context,
                   const at::TensorOptions& scores) {
  at::Tensor added = relative;
  const auto add = [&](const at::Tensor& other) {
    added = added.defined() ? added + other : other;
  };
  const at::ScalarType type = c10::typeMetaToScalarType(scores.dtype());
  if (mask.defined()) add(ScoresOfVisible(View(mask, span).unsqueeze(1).unsqueeze(1), type));
  if (window >= 0) {
    const at::Tensor places = at::arange(span.length, scores.dtype(at::kLong));
    const at::Tensor distance = places - places.narrow(0, asked.first, asked.count).unsqueeze(1);
    add(ScoresOfVisible(distance.abs() <= window, type));
  }
  if (context.distances.defined()) {
    add(ScoresByDistance(context.distances, asked.first, asked.count, span.length)
            .div(std::sqrt(static_cast<double>(options.dim_head()))));
  }
  return added.defined() ? added.to(scores.dtype()) : added;
}

}  // namespace

// Returns an undefined tensor where the device has no kernel that takes these.
at::Tensor Attention::AttendOnDevice(const at::Tensor& queries, const at::Tensor& keys,
                                     const at::Tensor& values, const Context& context) const {
  const auto kernel = KernelsFor(queries).softmax_attention;
  // Sequences that are whole all have no windows.
  const bool windows = !context.globals || !context.globals->all_whole();
  const bool plain = !context.mask.defined() && !(context.globals && windows) &&
                     !convolution_.defined() && !by_landmarks() && !relative_.defined() &&
                     options_.score_terms == 1;
  if (kernel == nullptr || !plain || !context.layout.table) return {};
  return kernel({.queries = queries,
                 .keys = keys,
                 .values = values,
                 .heads = options_.heads,
                 .layout = *context.layout.table,
                 .scale = SizesFor(DType::kF32, -1).scale,
                 .window = windows ? kind_.window : -1,
                 .distances = context.distances});
}

at::Tensor Attention::Attended(const at::Tensor& rows, const Context& context) const {
  const at::Tensor qkv = qkv_(rows);
  at::Tensor turned = qkv;
  if (kind_.theta > 0) {
    turned = qkv.narrow(1, 0, turned_heads() * options_.dim_head()).contiguous();
    linserve::Rotate(turned, context.layout, turned_heads(), context.rotations.at(kind_.theta));
  }
  at::Tensor queries = turned.narrow(1, 0, options_.dim);
  at::Tensor keys = turned.narrow(1, options_.dim, options_.dim);
  at::Tensor values =
      (options_.turns_values ? turned : qkv).narrow(1, 2 * options_.dim, options_.dim);
  if (norms_keys()) {
    queries = query_norm_(queries.contiguous());
    keys = key_norm_(keys.contiguous());
  }
  at::Tensor together = AttendOnDevice(queries, keys, values, context);
  if (together.defined()) return together;
  CheckNotRecording(context.layout);
  for (at::Tensor* part : {&queries, &keys, &values}) *part = part->contiguous();
  const at::Tensor attended = NewRows(context.layout, rows.size(0), options_.dim, rows.options());
  if (context.globals) {
    AttendAround(rows, queries, keys, values, context, attended);
    return attended;
  }
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
    at::Tensor result = AttendSpan(span, heads(queries), heads(keys), heads(values), mask, context);
    if (convolution_.defined()) {
      result = result + ConvolveRows(SplitHeads(View(values, span), options_.heads), convolution_);
    }
    View(attended, span).copy_(JoinHeads(result));
  }
  return attended;
}

void Attention::AttendAround(const at::Tensor& rows, const at::Tensor& queries,
                             const at::Tensor& keys, const at::Tensor& values,
                             const Context& context, const at::Tensor& attended) const {
  const GlobalTokens& tokens = *context.globals;
  RowsWithGlobals all{.layout = context.layout,
                      .tokens = tokens,
                      .heads = options_.heads,
                      .window = kind_.window,
                      .run = kind_.run,
                      .scale = SizesFor(DType::kF32, -1).scale,
                      .mask = context.mask,
                      .queries = queries,
                      .keys = keys,
                      .values = values,
                      .global_queries = {},
                      .global_keys = keys,
                      .global_values = values};
  if (ProjectsGlobals(context)) {
    all.global_queries = globals_->Queries(rows, tokens);
    const std::vector<at::Tensor> both = globals_->KeysAndValues(rows).chunk(2, 1);
    all.global_keys = both[0].contiguous();
    all.global_values = both[1].contiguous();
  } else {
    all.global_queries = queries.index_select(0, tokens.rows);
  }
  AttendWithGlobals(all, attended);
}

at::Tensor Attention::AttendSpan(const Span& span, const at::Tensor& queries,
                                 const at::Tensor& keys, const at::Tensor& values,
                                 const at::Tensor& mask, const Context& context) const {
  const auto added_to = [&](const Asked& asked, const at::Tensor& relative) {
    return AddedTo(span, asked, options_, kind_.window, mask, relative, context, queries.options());
  };
  if (by_landmarks()) {
    return LandmarkAttention(queries, keys, values, added_to({0, span.length}, {}),
                             options_.landmarks.count, options_.landmarks.by_head);
  }
  const double scale = SizesFor(DType::kF32, -1).scale;
  const bool by_pairs = relative_.defined() || context.distances.defined();
  const bool differ = relative_.defined() || mask.defined();  // from sequence to sequence
  const int64_t matrices = options_.heads * (differ ? span.count : 1);
  at::Tensor result = AttendByParts(
      queries, keys, values, scale, by_pairs ? matrices : 0, [&](int64_t first, int64_t count) {
        const at::Tensor some = queries.narrow(2, first, count);
        const at::Tensor relative = relative_.defined()
                                        ? relative_(some, keys, context.places, first).mul_(scale)
                                        : at::Tensor();
        return added_to({first, count}, relative);
      });
  if (kind_.window >= 0 && mask.defined()) {
    const at::Tensor blank = SeeAny(View(mask, span), kind_.window, kind_.window).logical_not();
    result.masked_fill_(blank.unsqueeze(1).unsqueeze(-1), 0);
  }
  if (!options_.hides_queries || !mask.defined()) return result;
  // A query that sees nothing averages all values. In F16 no score is so low that the others do not
  // count beside it.
  const at::Tensor there = View(mask, span).unsqueeze(1).unsqueeze(-1);
  return at::where(there, result, values.mean(2, /*keepdim=*/true));
}

}  // namespace linserve::transformers
