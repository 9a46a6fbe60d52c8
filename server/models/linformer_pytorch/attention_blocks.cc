#include "attention/blocks/block_slots.h"
#include "attention/products/block_product.h"
#include "attention/rows/aten.h"
#include "models/linformer_pytorch/attention.h"
#include "models/network/slots_by_blocks.h"

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
  AttendByBlocks(
      {.layout = input.query_layout,
       .inner = inner,
       .scratch_elements = kBlockRows * w_o_.outputs,
       .project = [&](size_t sequence, BlockSlots& own) { ProjectSource(input, sequence, own); },
       .set_queries =
           [&](int64_t row, int64_t, int64_t count, const RowBlock& out, float*) {
             packed_q_.Multiply(BlockOf(input.queries, row), count, out, /*add=*/false);
             HideRows(input.hidden_queries, row, count, inner, out);
           },
       .take = [&](int64_t row, int64_t count, const RowBlock& attended,
                   float* scratch) { AddOutput(BlockOf(target, row), attended, count, scratch); }},
      slots, then);
}

void MultiHeadAttention::AddOutput(const RowBlock& target, const RowBlock& joined, int64_t count,
                                   float* scratch) const {
  if (!w_o_2_) return w_o_.Add(target, joined, count);
  const RowBlock between{scratch, w_o_.outputs};
  w_o_.Set(between, joined, count);
  w_o_2_->Add(target, between, count);
}

}  // namespace linserve::linformer_pytorch
