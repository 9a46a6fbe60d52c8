#include "attention/products/block_product.h"
#include "models/linear_multihead_attention/attention.h"
#include "models/network/slots_by_blocks.h"

// This part of Attention computes block by block.
namespace linserve::linear_multihead_attention {
namespace {

// Returns a block of a side's rows with their positions. `rows` are the block without them, in the
// scratch or where the side's own are.
RowBlock AtPositions(const Attention::Side& side, const RowBlock& rows, int64_t row, int64_t count,
                     float* scratch) {
  if (!side.position.defined()) return rows;
  const int64_t width = side.position.size(1);
  const RowBlock placed{scratch, width};
  if (rows.data != scratch) side.rows.Copy(row, count, placed);
  AddRows(placed, count, width, BlockOf(side.position, row));
  return placed;
}

}  // namespace

void Attention::ProjectSource(const Side& source, size_t sequence, BlockSlots& slots) const {
  const int64_t start = source.layout.starts[sequence];
  const int64_t width = options_.embed_dim;
  slots.ProjectKeys(source.layout.lengths[sequence], e_blocks_, f_blocks_, kBlockRows * width,
                    [&](int64_t place, int64_t count, const RowBlock& out, float* scratch) {
                      const int64_t row = start + place;
                      const RowBlock rows = source.rows.Block(row, count, scratch);
                      value_.Set(out.Columns(width), rows, count);
                      key_.Set(out, AtPositions(source, rows, row, count, scratch), count);
                      HideRows(source.padding_mask, row, count, 2 * width, out);
                    });
}

void Attention::AddByBlocks(const at::Tensor& target, const Side& x, const Side& source,
                            const BlockStep& then) const {
  const int64_t width = options_.embed_dim;
  const int64_t heads = options_.num_heads;
  BlockSlots slots({options_.proj_k, heads, heads, width / heads}, /*shared=*/false);
  AttendByBlocks(
      {.layout = x.layout,
       .inner = width,
       .scratch_elements = kBlockRows * width,
       .project = [&](size_t sequence, BlockSlots& own) { ProjectSource(source, sequence, own); },
       .set_queries =
           [&](int64_t row, int64_t, int64_t count, const RowBlock& out, float* scratch) {
             const RowBlock rows = x.rows.Block(row, count, scratch);
             query_.Set(out, AtPositions(x, rows, row, count, scratch), count);
           },
       .take = [&](int64_t row, int64_t count, const RowBlock& attended,
                   float*) { out_proj_.Add(BlockOf(target, row), attended, count); }},
      slots, then);
}

}  // namespace linserve::linear_multihead_attention
