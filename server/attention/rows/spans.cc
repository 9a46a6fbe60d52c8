#include "attention/rows/spans.h"

#include <algorithm>

#include "attention/rows/aten.h"

namespace linserve {
namespace {

Span Alone(const PlacedLayout& layout, int64_t sequence) {
  const auto i = static_cast<size_t>(sequence);
  return {sequence, 1, layout.starts[i], layout.lengths[i], layout.lengths[i]};
}

// Says whether a device computes a padded batch of this layout.
bool IsPadded(const PlacedLayout& layout) { return layout.table && layout.padded_length > 0; }

}  // namespace

bool Continues(const Span& span, const PlacedLayout& layout) {
  const auto next = static_cast<size_t>(span.first + span.count);
  if (layout.lengths[next] != span.length) return false;
  const int64_t distance = layout.starts[next] - layout.starts[next - 1];
  return span.count == 1 || distance == span.stride;
}

void Extend(Span& span, const PlacedLayout& layout) {
  const auto next = static_cast<size_t>(span.first + span.count);
  span.stride = layout.starts[next] - layout.starts[next - 1];
  ++span.count;
}

PlacedLayout ComputedLayout(const PlacedLayout& layout, Padding padding) {
  PlacedLayout computed = layout;
  if (padding == Padding::kZeros) {
    std::fill(computed.lengths.begin(), computed.lengths.end(), layout.padded_length);
    computed.table = nullptr;
  }
  return computed;
}

PlacedLayout OneSequence(int64_t rows) {
  return {{.starts = {0}, .lengths = {rows}, .rows = rows}};
}

std::vector<Span> Spans(const PlacedLayout& layout) { return Spans(layout, layout).first; }

SpanPairs Spans(const PlacedLayout& first, const PlacedLayout& second) {
  SpanPairs pairs;
  for (int64_t sequence = 0; sequence < first.sequences();) {
    Span a = Alone(first, sequence);
    Span b = Alone(second, sequence);
    while (++sequence < first.sequences() && Continues(a, first) && Continues(b, second)) {
      Extend(a, first);
      Extend(b, second);
    }
    pairs.first.push_back(a);
    pairs.second.push_back(b);
  }
  if (first.table && first.table->apart != nullptr && pairs.first.size() > 1) ++*first.table->apart;
  return pairs;
}

at::Tensor RowsThere(const PlacedLayout& layout) {
  const at::Tensor lengths = layout.table->lengths.unsqueeze(1);
  return at::arange(layout.padded_length, lengths.options()) < lengths;
}

SpanPairs SpansOfPadded(const PlacedLayout& first, const PlacedLayout& second, at::Tensor& mask) {
  if (!IsPadded(first) || !IsPadded(second)) return Spans(first, second);
  const at::Tensor there = RowsThere(second).flatten();
  mask = mask.defined() ? mask.logical_and(there) : there;
  const auto whole = [](const PlacedLayout& layout) {
    return std::vector<Span>{{.count = layout.sequences(),
                              .length = layout.padded_length,
                              .stride = layout.padded_length}};
  };
  return {whole(first), whole(second)};
}

at::Tensor WithPaddingOfRows(const at::Tensor& rows, const PlacedLayout& layout) {
  if (!IsPadded(layout)) return rows;
  const LayoutTable& table = *layout.table;
  const at::Tensor places = at::arange(layout.padded_length, table.lengths.options());
  const at::Tensor nearest = at::minimum(places, (table.lengths - 1).unsqueeze(1));
  return rows.index_select(0, nearest.add_(table.starts.unsqueeze(1)).flatten());
}

at::Tensor NewRows(const PlacedLayout& layout, int64_t rows, int64_t width,
                   const at::TensorOptions& options) {
  return layout.padded_length > 0 ? at::zeros({rows, width}, options)
                                  : at::empty({rows, width}, options);
}

at::Tensor View(const at::Tensor& rows, const Span& span) {
  std::vector<int64_t> sizes = {span.count, span.length};
  std::vector<int64_t> strides = {span.stride * rows.stride(0), rows.stride(0)};
  for (int64_t axis = 1; axis < rows.dim(); ++axis) {
    sizes.push_back(rows.size(axis));
    strides.push_back(rows.stride(axis));
  }
  return rows.as_strided(sizes, strides, rows.storage_offset() + span.start * rows.stride(0));
}

at::Tensor SplitHeads(const at::Tensor& rows, int64_t heads) {
  return rows.unflatten(-1, {heads, rows.size(-1) / heads}).transpose(1, 2);
}

at::Tensor JoinHeads(const at::Tensor& heads) { return heads.transpose(1, 2).flatten(-2); }

}  // namespace linserve
