#include <algorithm>

#include "attention/rows/aten.h"
#include "attention/rows/scored_attention.h"
#include "attention/rows/spans.h"
#include "models/transformers/global_tokens/attend_with_globals.h"

namespace linserve::transformers {
namespace {

// Holds queries, keys and values of a sequence: [1, heads, rows, dim_head].
struct Rows {
  at::Tensor queries, keys, values;
};

// Returns what these queries attend to, a few of them at a time: all of their scores need not exist
// at once. `added`, which broadcasts to [queries, keys], is added to scores; it may be undefined.
at::Tensor AttendToAll(const Rows& rows, const at::Tensor& added, double scale) {
  return AttendByParts(rows.queries, rows.keys, rows.values, scale, rows.keys.size(1),
                       [&added](int64_t, int64_t) { return added; });
}

// Computes the rows of a sequence as if none were global, whose windows show keys `shown`, BOOL
// [length].
at::Tensor AttendInWindows(const RowsWithGlobals& all, const Rows& rows, size_t sequence,
                           const at::Tensor& shown) {
  const at::Tensor places = all.tokens.Of(all.tokens.places, sequence);
  const at::ScalarType type = rows.queries.scalar_type();
  const at::Tensor scores = (all.tokens.Of(all.tokens.scores, sequence) * all.scale).to(type);
  const int64_t length = rows.queries.size(2);
  const int64_t at_once = std::max<int64_t>(512, all.window);
  const at::Tensor result = at::empty_like(rows.queries);
  const at::Tensor others = rows.keys.index_select(2, places);
  const at::Tensor of_others = rows.values.index_select(2, places);
  for (int64_t first = 0; first < length; first += at_once) {
    const int64_t count = std::min(at_once, length - first);
    const int64_t begin = std::max<int64_t>(0, first - first % all.run - all.window);
    const int64_t last = first + count - 1;
    const int64_t end = std::min(length, last - last % all.run + all.run + all.window);
    const at::Tensor row = at::arange(first, first + count, places.options()).unsqueeze(1);
    const at::Tensor key = at::arange(begin, end, places.options());
    const at::Tensor opens = row - row.remainder(all.run) - all.window;
    const at::Tensor seen = key.ge(opens)
                                .logical_and(key.lt(opens + 2 * all.window + all.run))
                                .logical_and(shown.narrow(0, begin, end - begin));
    const at::Tensor added =
        at::cat({scores.expand({count, -1}), ScoresOfVisible(seen, type).to(type)}, 1);
    const auto joined = [&](const at::Tensor& global, const at::Tensor& own) {
      return at::cat({global, own.narrow(2, begin, end - begin)}, 2);
    };
    result.narrow(2, first, count)
        .copy_(at::scaled_dot_product_attention(rows.queries.narrow(2, first, count),
                                                joined(others, rows.keys),
                                                joined(of_others, rows.values), added,
                                                /*dropout_p=*/0, /*is_causal=*/false, all.scale));
  }
  return result;
}

}  // namespace

void AttendWithGlobals(const RowsWithGlobals& all, const at::Tensor& attended) {
  for (size_t i = 0; i < all.layout.starts.size(); ++i) {
    const int64_t length = all.layout.lengths[i];
    const Span span{.first = static_cast<int64_t>(i),
                    .start = all.layout.starts[i],
                    .length = length,
                    .stride = length};
    const auto heads = [&](const at::Tensor& rows) {
      return SplitHeads(View(rows, span), all.heads);
    };
    const Rows rows{heads(all.queries), heads(all.keys), heads(all.values)};
    at::Tensor visible;
    if (all.mask.defined()) {
      const at::Tensor mask = View(all.mask, span).unsqueeze(1).unsqueeze(1);
      const at::ScalarType type = rows.queries.scalar_type();
      visible = ScoresOfVisible(mask, type).to(type);
    }
    if (all.tokens.whole[i]) {
      View(attended, span).copy_(JoinHeads(AttendToAll(rows, visible, all.scale)));
      continue;
    }
    const at::Tensor shown = all.tokens.of_keys.narrow(0, span.start, length).ge(0);
    const at::Tensor result = AttendInWindows(all, rows, i, shown);
    if (all.tokens.CountOf(i) > 0) {
      const at::Tensor queries = all.tokens.Of(all.global_queries, i).unsqueeze(0);
      const Rows globals{SplitHeads(queries, all.heads), heads(all.global_keys),
                         heads(all.global_values)};
      result.index_copy_(2, all.tokens.Of(all.tokens.places, i),
                         AttendToAll(globals, visible, all.scale));
    }
    if (visible.defined()) result.masked_fill_(visible.transpose(2, 3).lt(0), 0);
    View(attended, span).copy_(JoinHeads(result));
  }
}

}  // namespace linserve::transformers
