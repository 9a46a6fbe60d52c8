#include <algorithm>

#include "attention/blocks/block_slots.h"
#include "attention/products/block_product.h"
#include "attention/rows/aten.h"
#include "models/linformer_pytorch/attention.h"

// This part of MultiHeadAttention computes block by block.
namespace linserve::linformer_pytorch {

void MultiHeadAttention::ProjectSource(const AttentionInput& input, size_t sequence,
                                       BlockSlots& slots) const {
  const int64_t start = input.source_layout.starts[sequence];
  const int64_t length = input.source_layout.lengths[sequence];
  const int64_t inner = options_.inner();
  const LengthWeights& e = e_->ByBlocks();
  const LengthWeights& f = f_->ByBlocks();
  if (LengthFirst(/*sequences=*/1, length)) {
    const auto copy = [&](int64_t row, int64_t count, const RowBlock& out, float*) {
      NormedRows{input.source}.Copy(start + row, count, out);
      HideRows(input.hidden_source, start + row, count, options_.width, out);
    };
    const auto to_keys = [&](const RowBlock& rows, int64_t count, const RowBlock& out) {
      packed_k_.Multiply(rows, count, out, /*add=*/false);
    };
    const auto to_values = [&](const RowBlock& rows, int64_t count, const RowBlock& out) {
      packed_v_.Multiply(rows, count, out, /*add=*/false);
    };
    return slots.ProjectSource(length, options_.width, e, f, copy, to_keys, to_values);
  }
  slots.ProjectKeys(length, e, f, 0, [&](int64_t row, int64_t count, const RowBlock& out, float*) {
    const RowBlock rows = BlockOf(input.source, start + row);
    packed_k_.Multiply(rows, count, out, /*add=*/false);
    packed_v_.Multiply(rows, count, out.Columns(inner), /*add=*/false);
    HideRows(input.hidden_source, start + row, count, 2 * inner, out);
  });
}

void MultiHeadAttention::AddByBlocks(const at::Tensor& target, const AttentionInput& input,
                                     const BlockStep& then) const {
  const int64_t inner = options_.inner();
  BlockSlots slots(
      {e_->slots(), options_.heads, options_.heads, options_.dim_head, options_.causal},
      /*shared=*/false);
  const int64_t own_scratch = kBlockRows * (2 * inner + w_o_.outputs) + slots.ScratchElements();
  const PlacedLayout& layout = input.query_layout;
  for (size_t i = 0; i < layout.starts.size(); ++i) {
    ProjectSource(input, i, slots);
    ForSlicedBlocks(layout.lengths[i], std::max(own_scratch, then.scratch_elements),
                    [&](int64_t begin, int64_t count, float* scratch) {
                      const int64_t row = layout.starts[i] + begin;
                      const RowBlock queries{scratch, inner};
                      const RowBlock attended = queries.Rows(kBlockRows);
                      float* rest = attended.Rows(kBlockRows).data;
                      packed_q_.Multiply(BlockOf(input.queries, row), count, queries,
                                         /*add=*/false);
                      HideRows(input.hidden_queries, row, count, inner, queries);
                      slots.Attend(queries, begin, count, attended, rest);
                      AddOutput(BlockOf(target, row), attended, count, rest);
                      if (then.apply) then.apply(row, count, scratch);
                    });
  }
}

void MultiHeadAttention::AddOutput(const RowBlock& target, const RowBlock& joined, int64_t count,
                                   float* scratch) const {
  if (!w_o_2_) return w_o_.Add(target, joined, count);
  const RowBlock between{scratch, w_o_.outputs};
  w_o_.Set(between, joined, count);
  w_o_2_->Add(target, between, count);
}

}  // namespace linserve::linformer_pytorch
