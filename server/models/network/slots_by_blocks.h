#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "attention/blocks/block_slots.h"
#include "attention/rows/placed_layout.h"
#include "models/network/layers.h"

namespace linserve {

// Describes sequences whose queries attend to slots of their own block by block, so that neither
// queries nor results ever exist as a whole. Blocks come with scratch of so many elements.
struct SlotsByBlocks {
  const PlacedLayout& layout;  // of the queries
  int64_t inner;               // width of a query
  int64_t scratch_elements;
  // Makes the slots of a sequence.
  std::function<void(size_t sequence, BlockSlots& slots)> project;
  // Makes queries of `count` rows from `row` on, which is row `place` of its sequence.
  std::function<void(int64_t row, int64_t place, int64_t count, const RowBlock& out,
                     float* scratch)>
      set_queries;
  // Takes what these rows attended to.
  std::function<void(int64_t row, int64_t count, const RowBlock& attended, float* scratch)> take;
};

// Computes it sequence by sequence in the memory of `slots`, and applies `then` to each block of
// rows that was taken.
void AttendByBlocks(const SlotsByBlocks& sequences, BlockSlots& slots, const BlockStep& then);

}  // namespace linserve
