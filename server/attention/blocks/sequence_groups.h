#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "attention/rows/placed_layout.h"

namespace linserve {

// Holds neighbouring sequences that are at most a block together.
struct SequenceGroup {
  size_t first;  // sequence
  size_t count;
  int64_t row;
  int64_t rows;

  size_t end() const { return first + count; }
};

// Shares the sequences of a layer out, such that no thread is without work: calls `together` for
// groups side by side, each on one thread with so many elements of scratch, and `alone` for the
// other sequences one after another, which all threads compute. Tells of the groups' rows that
// they are through the layer; `alone` does so of its own (RowsDone() in attention/rows/slices.h).
void ForSequenceGroups(
    const PlacedLayout& layout, int64_t scratch_elements,
    const std::function<void(const SequenceGroup& group, float* scratch)>& together,
    const std::function<void(size_t sequence)>& alone);

}  // namespace linserve
