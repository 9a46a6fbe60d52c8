#include "attention/linformer/linformer_attention.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "attention/device/device_plugin.h"
#include "attention/linformer/softmax_attention.h"
#include "attention/rows/aten.h"
#include "attention/rows/attention_rows.h"
#include "attention/rows/product.h"
#include "attention/rows/spans.h"

namespace linserve {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double Largest(at::ScalarType type) {
  if (type == at::kBFloat16) return std::numeric_limits<c10::BFloat16>::max();
  return type == at::kDouble ? std::numeric_limits<double>::max()
                             : std::numeric_limits<float>::max();
}

// So many rows of queries are scored at once. A device is asked for more, less often: its scores
// take 256 MiB, and exist three times while they are computed.
int64_t RowsAtOnce(int64_t heads, int64_t slots, bool on_cpu) {
  const int64_t most_rows = on_cpu ? 4096 : 65536;
  const int64_t most_scores = int64_t{1} << (on_cpu ? 24 : 26);
  return std::clamp(most_scores / (heads * slots), int64_t{1}, most_rows);
}

// Calls `compute` for spans of at most `most` rows: which rows, and how many of their sequence come
// before them. On the CPU packed sequences go one by one: together, their heads would have to be
// copied. On a device that costs less than as many launches.
void ForSpans(const PlacedLayout& layout, int64_t most, bool on_cpu,
              const std::function<void(const Span&, int64_t row)>& compute) {
  const int64_t padded = layout.padded_length;
  if (padded > 0 && (on_cpu ? layout.rows : padded) <= most) {
    // One product over the padding, too, is faster than one for each sequence.
    const int64_t at_once = most / padded;
    for (int64_t i = 0; i < layout.sequences(); i += at_once) {
      const int64_t count = std::min(at_once, layout.sequences() - i);
      compute({i, count, i * padded, padded, padded}, 0);
    }
    return;
  }
  for (const Span& span : Spans(layout)) {
    const int64_t at_once = on_cpu ? 1 : std::max(most / span.length, int64_t{1});
    for (int64_t i = 0; i < span.count; i += at_once) {
      const int64_t count = std::min(at_once, span.count - i);
      for (int64_t row = 0; row < span.length; row += most) {
        const int64_t rows = std::min(most, span.length - row);
        compute({span.first + i, count, span.start + i * span.stride + row, rows,
                 count > 1 ? span.stride : rows},
                row);
      }
    }
  }
}

// Scores the queries of a span of the batch.
class Scorer {
 public:
  Scorer(const at::Tensor& queries, const at::Tensor& keys, int64_t heads, const at::Tensor& mask)
      : queries_(queries), keys_(keys), heads_(heads), mask_(mask) {}

  // Returns the weights that the span's queries give the slots: [count, heads, length, slots].
  at::Tensor Weights(const Span& span, int64_t row) const {
    const double scale = std::sqrt(static_cast<double>(heads_) / queries_.size(1));
    at::Tensor queries = SplitHeads(View(queries_, span), heads_) * scale;
    at::Tensor keys = Heads(keys_, span).transpose(2, 3);
    // F16 ends at 65504, which a score passes easily.
    if (queries.scalar_type() == at::kHalf) {
      queries = queries.to(at::kFloat);
      keys = keys.to(at::kFloat);
    }
    at::Tensor scores = Product(queries, keys);
    if (!mask_.defined()) return at::softmax(scores, -1);
    const at::Tensor mask = mask_.narrow(0, span.first, span.count).narrow(2, row, span.length);
    // The largest numbers of F32 are infinite in BF16, and the weights of an infinity are none.
    scores.add_(mask).clamp_max_(Largest(scores.scalar_type()));
    const at::Tensor closed = mask.eq(-kInfinity).all(-1, /*keepdim=*/true);
    return at::softmax(scores, -1).masked_fill_(closed, 0);
  }

  // Splits keys or values [batch, slots, kv_heads · dim_head] of the span's sequences: [count,
  // kv_heads, slots, dim_head].
  at::Tensor Heads(const at::Tensor& slots, const Span& span) const {
    const int64_t dim_head = queries_.size(1) / heads_;
    return SplitHeads(slots.narrow(0, span.first, span.count), slots.size(2) / dim_head);
  }

 private:
  const at::Tensor& queries_;
  const at::Tensor& keys_;
  int64_t heads_;
  const at::Tensor& mask_;
};

// Makes zeros of padding, which a product over the length would add up.
void ClearPadding(const at::Tensor& rows, const PlacedLayout& layout) {
  const int64_t length = layout.padded_length;
  if (!rows.is_cpu() && layout.table) {
    const at::Tensor missing = RowsThere(layout).logical_not();
    rows.view({layout.sequences(), length, -1}).masked_fill_(missing.unsqueeze(2), 0);
    return;
  }
  for (size_t i = 0; i < layout.starts.size(); ++i) {
    const int64_t end = layout.starts[i] + layout.lengths[i];
    rows.narrow(0, end, length - layout.lengths[i]).zero_();
  }
}

}  // namespace

at::Tensor ProjectLength(const at::Tensor& rows, const at::Tensor& projection,
                         const PlacedLayout& layout) {
  if (const auto kernel = KernelsFor(rows).project_length; kernel != nullptr && layout.table) {
    at::Tensor result = kernel(rows, projection, *layout.table);
    if (result.defined()) return result;
  }
  CheckNotRecording(layout);
  if (layout.padded_length > 0) {
    const int64_t length = layout.padded_length;
    ClearPadding(rows, layout);
    return Product(projection.narrow(0, 0, length).t(),
                   rows.view({layout.sequences(), length, rows.size(1)}));
  }
  at::Tensor result =
      at::empty({layout.sequences(), projection.size(1), rows.size(1)}, rows.options());
  for (const Span& span : Spans(layout)) {
    at::Tensor targets = result.narrow(0, span.first, span.count);
    const at::Tensor own = View(rows, span);
    const at::Tensor weights = projection.narrow(0, 0, span.length).t();
    if (span.length == 1) {
      SetProduct(targets, weights, own);
      continue;
    }
    if (!rows.is_cpu()) {
      SetProduct(targets, weights.expand({span.count, -1, -1}), own);
      continue;
    }
    for (int64_t i = 0; i < span.count; ++i) {
      at::Tensor target = targets.select(0, i);
      SetProduct(target, weights, own.select(0, i));
    }
  }
  return result;
}

at::Tensor WithAlignedRows(const at::Tensor& projection) {
  constexpr int64_t kNumbers = 8;
  const int64_t more = (kNumbers - projection.size(1) % kNumbers) % kNumbers;
  if (projection.is_cpu() || more == 0) return projection;
  return at::constant_pad_nd(projection, {0, more}).narrow(1, 0, projection.size(1));
}

at::Tensor AttendToSlots(const at::Tensor& queries, const at::Tensor& keys,
                         const at::Tensor& values, int64_t heads, const PlacedLayout& layout,
                         const at::Tensor& mask) {
  const auto kernel = KernelsFor(queries).attend_to_slots;
  if (kernel != nullptr && layout.table && !mask.defined()) {
    at::Tensor result = kernel(queries, keys, values, heads, *layout.table);
    if (result.defined()) return result;
  }
  const Scorer scorer(queries, keys, heads, mask);
  at::Tensor result = NewRows(layout, queries.size(0), queries.size(1), queries.options());
  const int64_t most = RowsAtOnce(heads, keys.size(1), queries.is_cpu());
  ForSpans(layout, most, queries.is_cpu(), [&](const Span& span, int64_t row) {
    const at::Tensor weights = scorer.Weights(span, row).to(values.scalar_type());
    SplitHeads(View(result, span), heads).copy_(Product(weights, scorer.Heads(values, span)));
    RowsRead(span.count * span.length);
  });
  return result;
}

at::Tensor SlotWeights(const at::Tensor& queries, const at::Tensor& keys, int64_t heads,
                       const PlacedLayout& layout, const at::Tensor& mask) {
  const Scorer scorer(queries, keys, heads, mask);
  at::Tensor result = NewRows(layout, queries.size(0), keys.size(1), queries.options());
  const int64_t most = RowsAtOnce(heads, keys.size(1), queries.is_cpu());
  ForSpans(layout, most, queries.is_cpu(), [&](const Span& span, int64_t row) {
    View(result, span).copy_(scorer.Weights(span, row).mean(1));
  });
  return result;
}

at::Tensor LinformerAttention(const at::Tensor& query, const at::Tensor& key,
                              const at::Tensor& value, const at::Tensor& k_projection,
                              const at::Tensor& v_projection, const Visible& visible) {
  const at::ScalarType type = SumType(query);
  const auto project = [&](const at::Tensor& projection, const at::Tensor& rows) {
    const at::Tensor mask = MaskRows(visible.mask, 0, rows.size(-2));
    return Product(projection.to(type), Hidden(rows.to(type), mask, 0));
  };
  at::Tensor result = EmptyResult(query, value);
  Store(result, SoftmaxAttention(query.to(type), project(k_projection, key),
                                 project(v_projection, value), {.causal = visible.causal}));
  return result;
}

}  // namespace linserve
