#include "models/network/slots_by_blocks.h"

#include <algorithm>

#include "attention/products/block_product.h"

namespace linserve {

void AttendByBlocks(const SlotsByBlocks& sequences, BlockSlots& slots, const BlockStep& then) {
  const PlacedLayout& layout = sequences.layout;
  const int64_t inner = sequences.inner;
  const int64_t own_scratch =
      2 * kBlockRows * inner + std::max(sequences.scratch_elements, slots.ScratchElements());
  for (size_t i = 0; i < layout.starts.size(); ++i) {
    sequences.project(i, slots);
    ForSlicedBlocks(layout.lengths[i], std::max(own_scratch, then.scratch_elements),
                    [&](int64_t begin, int64_t count, float* scratch) {
                      const int64_t row = layout.starts[i] + begin;
                      const RowBlock queries{scratch, inner};
                      const RowBlock attended = queries.Rows(kBlockRows);
                      float* rest = attended.Rows(kBlockRows).data;
                      sequences.set_queries(row, begin, count, queries, rest);
                      slots.Attend(queries, begin, count, attended, rest);
                      sequences.take(row, count, attended, rest);
                      if (then.apply) then.apply(row, count, scratch);
                    });
  }
}

}  // namespace linserve
