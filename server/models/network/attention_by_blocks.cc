#include "models/network/attention_by_blocks.h"

#include <limits>

#include "attention/rows/aten.h"

namespace linserve {

void AttentionByBlocks::SetKeysOf(const RowBlock& own, const Sequence& sequence, int64_t row,
                                  int64_t count, const RowBlock& out) const {
  to_k.Set(out, own, count);
  if (rotary.defined()) RotateRows(out, count, heads, inner() / heads, BlockOf(rotary, row));
  if (!mask.defined() || hides_from == inner()) return;
  const bool* visible = mask.const_data_ptr<bool>() + sequence.source_start + row;
  for (int64_t i = 0; i < count; ++i) {
    if (visible[i]) continue;
    float* keys = out.Rows(i).data;
    std::fill(keys + hides_from, keys + inner(), std::numeric_limits<float>::lowest());
  }
}

void AttentionByBlocks::SetKeys(const Sequence& sequence, int64_t row, int64_t count,
                                const RowBlock& out, float* scratch) const {
  SetKeysOf(source.Block(sequence.source_start + row, count, scratch), sequence, row, count, out);
}

void AttentionByBlocks::SetKeysAndValues(const Sequence& sequence, int64_t row, int64_t count,
                                         const RowBlock& out, float* scratch) const {
  const int64_t first = sequence.source_start + row;
  const RowBlock own = source.Block(first, count, scratch);
  const RowBlock values = out.Columns(inner());
  SetKeysOf(own, sequence, row, count, out);
  to_v.Set(values, own, count);
  if (!mask.defined()) return;
  const bool* visible = mask.const_data_ptr<bool>() + first;
  for (int64_t i = 0; i < count; ++i) {
    if (!visible[i]) std::fill_n(values.Rows(i).data, inner(), 0.0F);
  }
}

void AttentionByBlocks::SetQueries(const Sequence& sequence, int64_t row, int64_t count,
                                   const RowBlock& out, float* scratch) const {
  to_q.Set(out, x.Block(sequence.start + row, count, scratch), count);
  if (rotary.defined()) RotateRows(out, count, heads, inner() / heads, BlockOf(rotary, row));
}

void AttentionByBlocks::AddAttended(const Sequence& sequence, const RowBlock& attended) const {
  ForSlicedBlocks(sequence.length, then.scratch_elements,
                  [&](int64_t begin, int64_t count, float* scratch) {
                    const int64_t row = sequence.start + begin;
                    to_out.Add(BlockOf(target, row), attended.Rows(begin), count);
                    if (then.apply) then.apply(row, count, scratch);
                  });
}

}  // namespace linserve
