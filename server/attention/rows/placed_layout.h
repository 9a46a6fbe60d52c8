#pragma once

#include <cstdint>
#include <memory>

#include "attention/rows/aten.h"
#include "core/sequence/batch.h"

namespace linserve {

// Holds a layout in a device's memory: what kernels read, and what a graph finds anew at each
// replay. The tensors are of I32.
struct LayoutTable {
  at::Tensor starts;   // [batch]
  at::Tensor lengths;  // [batch]
  at::Tensor bounds;   // [batch + 1]: the starts, and where the last sequence's rows end
  // Holds the place of each row in its sequence; rows that belong to no sequence have some place.
  at::Tensor positions{};  // [rows]
  // Names tiles of at most kTileRows rows that have all of the sequences' rows, each by its
  // sequence and its first row in it: so no long sequence makes a kernel look through all others.
  at::Tensor tiles{};  // [number, 2]
  static constexpr int64_t kTileRows = 64;
  int64_t longest = 0;  // no length is more
  bool padded = false;  // there are rows that belong to no sequence
  // The host's lengths are bounds: a pass is being recorded, and only these tensors tell the truth.
  bool recording = false;
  // Counts how often Spans() gave sequences that are computed one after another, for whoever asks.
  int64_t* apart = nullptr;
};

// Is a layout on the host, and as the device reads it.
struct PlacedLayout : AxisLayout {
  std::shared_ptr<const LayoutTable> table{};  // null: the host computes
};

}  // namespace linserve
