#include <algorithm>
#include <limits>

#include "attention/rows/aten.h"
#include "attention/rows/slices.h"
#include "models/linear_attention_transformer/attention.h"

// This part of Attention computes block by block.
namespace linserve::linear_attention_transformer {

bool Attention::WorksByBlocks() const {
  return to_q_.packed && options_.local_heads == 0 && options_.axial_width == 0 &&
         (!options_.causal || options_.bucket == 1);
}

void Attention::AddByBlocks(const at::Tensor& target, const NormedRows& x,
                            const PlacedLayout& layout, const NormedRows& source,
                            const MaskedLayout& source_layout, const at::Tensor& rotary,
                            const BlockStep& then) const {
  BlockLinearAttention global(options_.heads, options_.dim_head);
  BlockCausalAttention causal(options_.heads, options_.dim_head);
  RowSlices slices;
  for (size_t i = 0; i < layout.starts.size(); ++i) {
    const BlockSequence sequence{target,
                                 x,
                                 source,
                                 layout.starts[i],
                                 layout.lengths[i],
                                 source_layout.layout.starts[i],
                                 source_layout.layout.lengths[i],
                                 source_layout.mask,
                                 rotary,
                                 then};
    if (options_.causal) {
      AddCausal(sequence, causal, slices);
    } else {
      AddGlobal(sequence, global, slices);
    }
  }
}

// Sets `out` to keys and, beside them, values of rows of the sequence's source.
void Attention::SetKeys(const BlockSequence& sequence, int64_t row, int64_t count,
                        const RowBlock& out, float* scratch) const {
  const int64_t first = sequence.source_start + row;
  const RowBlock rows = sequence.source.Block(first, count, scratch);
  const RowBlock values = out.Columns(inner());
  to_k_.Set(out, rows, count);
  to_v_.Set(values, rows, count);
  if (sequence.rotary.defined()) {
    RotateRows(out, count, options_.heads, options_.dim_head, BlockOf(sequence.rotary, row));
  }
  if (!sequence.mask.defined()) return;
  const bool* visible = sequence.mask.const_data_ptr<bool>() + first;
  for (int64_t i = 0; i < count; ++i) {
    if (visible[i]) continue;
    std::fill_n(out.Rows(i).data, inner(), std::numeric_limits<float>::lowest());
    std::fill_n(values.Rows(i).data, inner(), 0.0F);
  }
}

void Attention::SetQueries(const BlockSequence& sequence, int64_t row, int64_t count,
                           const RowBlock& out, float* scratch) const {
  to_q_.Set(out, sequence.x.Block(sequence.start + row, count, scratch), count);
  if (sequence.rotary.defined()) {
    RotateRows(out, count, options_.heads, options_.dim_head, BlockOf(sequence.rotary, row));
  }
}

void Attention::AddGlobal(const BlockSequence& sequence, BlockLinearAttention& attention,
                          RowSlices& slices) const {
  const int64_t block = kBlockRows * options_.dim;  // elements
  attention.Begin();
  slices.ForEach(
      sequence.source_length, 2 * inner(), block,
      [&](int64_t row, int64_t count, const RowBlock& out, float* scratch) {
        SetKeys(sequence, row, count, out, scratch);
      },
      [&](int64_t, int64_t count, const RowBlock& rows) {
        attention.Add(rows, rows.Columns(inner()), count);
      });
  attention.Finish();
  const int64_t scratch_elements = block + 2 * kBlockRows * inner() + attention.ScratchElements();
  ForSlicedBlocks(sequence.length, std::max(scratch_elements, sequence.then.scratch_elements),
                  [&](int64_t begin, int64_t count, float* scratch) {
                    const int64_t row = sequence.start + begin;
                    const RowBlock queries{scratch + block, inner()};
                    const RowBlock attended = queries.Rows(kBlockRows);
                    SetQueries(sequence, begin, count, queries, scratch);
                    attention.Attend(queries, count, attended, attended.Rows(kBlockRows).data);
                    to_out_.Add(BlockOf(sequence.target, row), attended, count);
                    if (sequence.then.apply) sequence.then.apply(row, count, scratch);
                  });
}

void Attention::AddCausal(const BlockSequence& sequence, BlockCausalAttention& attention,
                          RowSlices& slices) const {
  attention.Begin();
  slices.ForEach(
      sequence.length, 3 * inner(), kBlockRows * options_.dim,
      [&](int64_t row, int64_t count, const RowBlock& out, float* scratch) {
        SetQueries(sequence, row, count, out, scratch);
        SetKeys(sequence, row, count, out.Columns(inner()), scratch);
      },
      [&](int64_t first, int64_t some, const RowBlock& rows) {
        attention.Attend(rows, rows.Columns(inner()), rows.Columns(2 * inner()), some);
        ForBlocks(some, sequence.then.scratch_elements,
                  [&](int64_t begin, int64_t count, float* scratch) {
                    const int64_t row = sequence.start + first + begin;
                    to_out_.Add(BlockOf(sequence.target, row), rows.Rows(begin), count);
                    if (sequence.then.apply) sequence.then.apply(row, count, scratch);
                  });
        RowsDone(some);
      });
}

}  // namespace linserve::linear_attention_transformer
