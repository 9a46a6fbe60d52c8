#include "attention/positions/positions.h"

#include <algorithm>

#include "attention/device/device_plugin.h"
#include "attention/positions/rotary_frequencies.h"
#include "attention/products/block_product.h"
#include "attention/rows/aten.h"
#include "attention/rows/scratch.h"

namespace linserve {
namespace {

// rows [first, first + count) += table's first ones
void AddFirst(const at::Tensor& rows, int64_t first, int64_t count, const at::Tensor& table) {
  const at::Tensor added = table.narrow(0, 0, count);
  if (rows.is_cpu()) {
    AddRows(BlockOf(rows, first), count, rows.size(1), BlockOf(added));
  } else {
    rows.narrow(0, first, count).add_(added);
  }
}

// Adds table[t] to each row of a device whose place is t; places [rows].
void AddAt(const at::Tensor& rows, const at::Tensor& table, const at::Tensor& places) {
  const auto kernel = KernelsFor(rows).add_positions;
  if (kernel != nullptr && kernel(rows, table, places)) return;
  rows.add_(table.index_select(0, places));
}

// Turns rows [..., rows, width] by the angles of their places, [rows, width of a head].
void RotateTensor(const at::Tensor& rows, int64_t heads, const at::Tensor& angles) {
  const int64_t pairs = angles.size(1) / 2;
  const at::Tensor features = rows.unflatten(-1, {heads, pairs, 2});
  const at::Tensor of_heads = angles.to(at::kFloat).unsqueeze(1);
  const at::Tensor sine = of_heads.narrow(-1, 0, pairs);
  const at::Tensor cosine = of_heads.narrow(-1, pairs, pairs);
  const at::Tensor first = features.select(-1, 0).to(at::kFloat);
  const at::Tensor second = features.select(-1, 1).to(at::kFloat);
  const at::Tensor result = first * cosine - second * sine;
  features.select(-1, 1).copy_(second * cosine + first * sine);
  features.select(-1, 0).copy_(result);
}

}  // namespace

at::Tensor Sinusoid(int64_t length, int64_t width, double base, const at::Device& device) {
  return Sinusoid(at::arange(length, at::device(device).dtype(at::kLong)), width, base);
}

at::Tensor Sinusoid(const at::Tensor& positions, int64_t width, double base, double stretch) {
  const at::Tensor reciprocals = ReciprocalFrequencies(width, base, positions.options());
  return Sinusoid(positions, reciprocals.reciprocal().div(stretch));
}

at::Tensor Sinusoid(const at::Tensor& positions, const at::Tensor& frequencies) {
  const at::Tensor angles = at::outer(positions.to(at::kFloat), frequencies);
  return at::cat({angles.sin(), angles.cos()}, -1);
}

at::Tensor PlacesOfTokens(const at::Tensor& ids, const PlacedLayout& layout, int64_t padding) {
  const at::Tensor counted = ids.ne(padding).to(at::kLong);
  const at::Tensor before = counted.cumsum(0).sub_(counted);  // in the whole batch
  at::Tensor starts = at::arange(ids.size(0), ids.options().dtype(at::kInt));
  if (layout.table) {
    starts.sub_(layout.table->positions);
  } else {
    for (const Span& span : Spans(layout)) {
      const at::Tensor of_span = View(starts, span);
      of_span.copy_(of_span.narrow(1, 0, 1).clone().expand_as(of_span));
    }
  }
  return before.sub(before.index_select(0, starts)).add_(1).mul_(counted).add_(padding);
}

void AddPositions(at::Tensor& rows, const PlacedLayout& layout, const at::Tensor& table) {
  if (layout.table) return AddAt(rows, table, layout.table->positions);
  for (size_t i = 0; i < layout.starts.size(); ++i) {
    AddFirst(rows, layout.starts[i], layout.lengths[i], table);
  }
}

void AddAxialPositions(at::Tensor& rows, const PlacedLayout& layout, const at::Tensor& coarse,
                       const at::Tensor& fine) {
  const int64_t width = fine.size(0);
  if (layout.table) {
    const at::Tensor& places = layout.table->positions;
    AddAt(rows, coarse, places.div(width, "floor"));
    return AddAt(rows, fine, places.remainder(width));
  }
  for (size_t i = 0; i < layout.starts.size(); ++i) {
    for (int64_t place = 0; place < layout.lengths[i]; place += width) {
      const int64_t first = layout.starts[i] + place;
      const int64_t some = std::min(width, layout.lengths[i] - place);
      const at::Tensor one = coarse.narrow(0, place / width, 1);
      if (rows.is_cpu()) {
        AddBias(BlockOf(rows, first), some, rows.size(1), BlockOf(one).data);
      } else {
        rows.narrow(0, first, some).add_(one);
      }
      AddFirst(rows, first, some, fine);
    }
  }
}

void Rotate(at::Tensor& rows, const PlacedLayout& layout, int64_t heads, const at::Tensor& table) {
  if (layout.table) {
    const at::Tensor& places = layout.table->positions;
    const auto kernel = KernelsFor(rows).rotate;
    if (kernel != nullptr && kernel(rows, heads, table, places)) return;
    return RotateTensor(rows, heads, table.index_select(0, places));
  }
  for (const Span& span : Spans(layout)) {
    const at::Tensor sequences = View(rows, span);
    const int64_t most = CountAtOnce(span.count * rows.size(1), rows.is_cpu());
    for (int64_t row = 0; row < span.length; row += most) {
      const int64_t count = std::min(most, span.length - row);
      RotateTensor(sequences.narrow(1, row, count), heads, table.narrow(0, row, count));
    }
  }
}

at::Tensor ByPairs(const at::Tensor& outputs, int64_t heads) {
  return outputs.unflatten(0, {heads, 2, -1}).transpose(1, 2).flatten(0, 2);
}

}  // namespace linserve
