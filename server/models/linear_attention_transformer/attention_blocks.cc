#include <algorithm>

#include "attention/blocks/block_attention.h"
#include "attention/rows/aten.h"
#include "models/linear_attention_transformer/attention.h"
#include "models/network/attention_by_blocks.h"

// This part of Attention computes block by block.
namespace linserve::linear_attention_transformer {

bool Attention::WorksByBlocks() const {
  return to_q_.packed && (!options_.causal || BlockCausalAttention::Takes(options_.bucket)) &&
         (options_.local_heads == 0 ||
          (options_.window <= BlockLocalAttention::kLongestWindow && !options_.outside_is_seen));
}

void Attention::AddByBlocks(const at::Tensor& target, const NormedRows& x,
                            const PlacedLayout& layout, const NormedRows& source,
                            const MaskedLayout& source_layout, const at::Tensor& rotary,
                            const BlockStep& then) const {
  const AttentionByBlocks rows{.to_q = to_q_,
                               .to_k = to_k_,
                               .to_v = to_v_,
                               .to_out = to_out_,
                               .heads = options_.heads,
                               .hides_from = options_.local_heads * options_.dim_head,
                               .target = target,
                               .x = x,
                               .layout = layout,
                               .source = source,
                               .source_layout = source_layout.layout,
                               .mask = source_layout.mask,
                               .rotary = rotary,
                               .then = then};
  if (options_.local_heads > 0 || options_.axial_width > 0) return AddOfWholeSequences(rows);
  if (options_.causal) {
    BlockCausalAttention attention(options_.heads, options_.dim_head, {}, options_.bucket);
    AddCausallyByBlocks(rows, attention);
  } else {
    BlockLinearAttention attention({.heads = options_.heads, .dim_head = options_.dim_head});
    linserve::AddByBlocks(rows, attention);
  }
}

void Attention::AddOfWholeSequences(const AttentionByBlocks& rows) const {
  const int64_t inner = rows.inner();
  const at::Tensor key_scores = BlockAttention::ScoresOfKeys(rows.mask);
  for (size_t i = 0; i < rows.layout.starts.size(); ++i) {
    const auto sequence = rows.At(i);
    const at::Tensor all = at::empty({sequence.length, 3 * inner}, at::kFloat);
    const RowBlock queries = BlockOf(all);
    ForBlocks(sequence.length, rows.block(), [&](int64_t begin, int64_t count, float* scratch) {
      const RowBlock block = BlockOf(all, begin);
      rows.SetQueries(sequence, begin, count, block, scratch);
      rows.SetKeysAndValues(sequence, begin, count, block.Columns(inner), scratch);
    });
    if (options_.local_heads > 0) {
      local_->Attend({.queries = queries,
                      .keys = queries.Columns(inner),
                      .values = queries.Columns(2 * inner),
                      .count = sequence.length,
                      .key_scores = key_scores.defined()
                                        ? key_scores.const_data_ptr<float>() + sequence.source_start
                                        : nullptr});
    }
    AttendGlobally(queries, sequence.length);
    rows.AddAttended(sequence, queries);
  }
}

// Overwrites what belongs to global heads of a sequence's queries, which have keys and values
// beside them. Each column of a grid is a sequence of its own.
void Attention::AttendGlobally(const RowBlock& queries, int64_t count) const {
  const int64_t heads = options_.heads - options_.local_heads;
  if (heads == 0) return;
  const int64_t inner = options_.heads * options_.dim_head;
  const int64_t width = heads * options_.dim_head;
  const int64_t columns = std::min(count, std::max<int64_t>(1, options_.axial_width));
  const auto for_columns = [&](const auto& attend) {
    for (int64_t column = 0; column < columns; ++column) {
      const RowBlock own{queries.Rows(column).Columns(inner - width).data,
                         columns * queries.stride};
      const RowBlock keys = own.Columns(inner);
      attend(own, keys, keys.Columns(inner), (count - column + columns - 1) / columns);
    }
  };
  if (options_.causal) {
    BlockCausalAttention attention(heads, options_.dim_head, {}, options_.bucket);
    for_columns([&](const RowBlock& own, const RowBlock& keys, const RowBlock& values,
                    int64_t rows) { AttendCausallyInPlace(attention, own, keys, values, rows); });
  } else {
    BlockLinearAttention attention({.heads = heads, .dim_head = options_.dim_head});
    for_columns([&](const RowBlock& own, const RowBlock& keys, const RowBlock& values,
                    int64_t rows) { AttendInPlace(attention, own, keys, values, rows, width); });
  }
}

}  // namespace linserve::linear_attention_transformer
