#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "attention/rows/placed_layout.h"

namespace linserve {

// A table is one list of I32, which is written on the host and read on a device.

inline int64_t TilesOf(const AxisLayout& layout) {
  int64_t tiles = 0;
  for (const int64_t length : layout.lengths) {
    tiles += (length + LayoutTable::kTileRows - 1) / LayoutTable::kTileRows;
  }
  return tiles;
}

// Returns how many numbers the table of a layout has.
inline int64_t TableSize(const AxisLayout& layout) {
  return 2 * layout.sequences() + 1 + layout.rows + 2 * TilesOf(layout);
}

// Writes these numbers.
inline void WriteTable(const AxisLayout& layout, int32_t* starts) {
  int32_t* lengths = starts + layout.sequences() + 1;
  lengths[-1] = static_cast<int32_t>(layout.rows);
  int32_t* positions = lengths + layout.sequences();
  int32_t* tile = positions + layout.rows;
  std::fill_n(positions, layout.rows, 0);
  for (size_t i = 0; i < layout.starts.size(); ++i) {
    const auto length = static_cast<int32_t>(layout.lengths[i]);
    starts[i] = static_cast<int32_t>(layout.starts[i]);
    lengths[i] = length;
    std::iota(positions + starts[i], positions + starts[i] + length, 0);
    for (int32_t row = 0; row < length; row += LayoutTable::kTileRows) {
      *tile++ = static_cast<int32_t>(i);
      *tile++ = row;
    }
  }
}

// Returns the table that these numbers are, wherever they lie now.
inline LayoutTable TableOf(const AxisLayout& layout, const at::Tensor& numbers) {
  const int64_t count = layout.sequences();
  const int64_t tiles = TilesOf(layout);
  return {.starts = numbers.narrow(0, 0, count),
          .lengths = numbers.narrow(0, count + 1, count),
          .bounds = numbers.narrow(0, 0, count + 1),
          .positions = numbers.narrow(0, 2 * count + 1, layout.rows),
          .tiles = numbers.narrow(0, 2 * count + 1 + layout.rows, 2 * tiles).view({tiles, 2}),
          .longest = layout.longest(),
          .padded = layout.padded_length > 0};
}

}  // namespace linserve
