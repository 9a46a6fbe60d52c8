#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "attention/rows/placed_layout.h"

namespace linserve {

// Returns the layout of the rows of a batch that count in a computation. In the masked modes these
// are the sequences' own rows; with Padding::kZeros the padding takes part like data, as in the
// Python packages.
PlacedLayout ComputedLayout(const PlacedLayout& layout, Padding padding);

// Holds neighbouring sequences of equal length at equal distances, which are computed as one
// tensor.
struct Span {
  int64_t first = 0;   // sequence
  int64_t count = 1;   // of sequences
  int64_t start = 0;   // row of the first one
  int64_t length = 0;  // rows of each
  int64_t stride = 0;  // rows from one to the next
};

// Says whether the next sequence of the layout continues a span of whole ones, and adds it.
bool Continues(const Span& span, const PlacedLayout& layout);
void Extend(Span& span, const PlacedLayout& layout);

// Returns the layout of so many rows that are one sequence.
PlacedLayout OneSequence(int64_t rows);

// Returns all sequences of the layout, in order. Whatever the padding mode is, attention that is
// computed span by span sees true rows only, and so is exact.
std::vector<Span> Spans(const PlacedLayout& layout);

// Holds the spans of two axes at once: entry i of both lists holds the same sequences.
struct SpanPairs {
  std::vector<Span> first;
  std::vector<Span> second;
};
SpanPairs Spans(const PlacedLayout& first, const PlacedLayout& second);

// Returns BOOL [batch, padded length] on a device: which rows of its padded batch are sequences'.
at::Tensor RowsThere(const PlacedLayout& layout);

// Returns them as one span of all sequences where a device's batch is padded, which is then asked
// once: `mask` BOOL [rows of the second axis], or undefined, then hides the padding, too.
SpanPairs SpansOfPadded(const PlacedLayout& first, const PlacedLayout& second, at::Tensor& mask);

// Returns rows [rows, width] whose padding, on a device, is copies of its sequence's last row: what
// is the largest of all rows stays that.
at::Tensor WithPaddingOfRows(const at::Tensor& rows, const PlacedLayout& layout);

// Makes [rows, width] for what the sequences' rows are written to. Rows of padding are zero:
// nothing reads them, but they must be finite.
at::Tensor NewRows(const PlacedLayout& layout, int64_t rows, int64_t width,
                   const at::TensorOptions& options);

// Views rows [rows, ...] as [count, length, ...]. REQUIRES: contiguous rows.
at::Tensor View(const at::Tensor& rows, const Span& span);

// Views [count, length, heads · dim_head] as [count, heads, length, dim_head].
at::Tensor SplitHeads(const at::Tensor& rows, int64_t heads);

// Inverts SplitHeads(): [count, heads, length, dim_head] -> [count, length, heads · dim_head].
at::Tensor JoinHeads(const at::Tensor& heads);

}  // namespace linserve
