#include <algorithm>
#include <cmath>

#include "attention/blocks/block_linear_attention.h"
#include "attention/favor/stabilized_attention.h"
#include "attention/positions/positions.h"
#include "attention/products/kernel_rows.h"
#include "attention/rows/aten.h"
#include "models/network/attention_by_blocks.h"
#include "models/performer_pytorch/attention.h"

// This part of Attention computes block by block.
namespace linserve::performer_pytorch {

bool Attention::WorksByBlocks() const {
  return to_q_.packed &&
         (local_heads_ == 0 || options_.local_window_size <= BlockLocalAttention::kLongestWindow);
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
                               .hides_from = to_k_.outputs,
                               .target = target,
                               .x = x,
                               .layout = layout,
                               .source = source,
                               .source_layout = source_layout.layout,
                               .mask = source_layout.mask,
                               .rotary = rotary,
                               .then = then};
  if (local_heads_ > 0) return AddWithLocalHeads(rows);
  WithGlobalAttention([&](auto& attention) { linserve::AddByBlocks(rows, attention); },
                      [&](auto& attention) { AddCausallyByBlocks(rows, attention); });
}

template <typename All, typename Causal>
void Attention::WithGlobalAttention(const All& all, const Causal& causal) const {
  const int64_t heads = global_heads();
  const int64_t width = options_.dim_head;
  if (is_softmaxed() && causal_) {
    BlockCausalAttention attention(heads, width, kDivisor);
    causal(attention);
  } else if (is_softmaxed()) {
    BlockLinearAttention attention({.heads = heads, .dim_head = width},
                                   std::sqrt(static_cast<double>(width)));
    all(attention);
  } else if (causal_) {
    StabilizedCausalAttention attention(heads, width, block_features_, kAdded);
    causal(attention);
  } else {
    StabilizedAttention attention(heads, width, block_features_);
    all(attention);
  }
}

void Attention::AddWithLocalHeads(const AttentionByBlocks& rows) const {
  const int64_t inner = rows.inner();
  const int64_t global_width = global_heads() * options_.dim_head;
  const int64_t window = options_.local_window_size;
  for (size_t i = 0; i < rows.layout.starts.size(); ++i) {
    const auto sequence = rows.At(i);
    // As in the package, the last window is filled up with rows of zeros.
    const int64_t filled = RoundUp(sequence.length, window);
    const at::Tensor all = at::empty({filled, 3 * inner}, at::kFloat);
    all.narrow(0, sequence.length, filled - sequence.length).zero_();
    Project(rows, sequence, all);
    const RowBlock queries = BlockOf(all);
    const RowBlock keys = queries.Columns(inner);
    const RowBlock values = keys.Columns(inner);
    at::Tensor scores;
    if (rows.mask.defined()) {
      scores = at::full({filled}, BlockAttention::kHidden, at::kFloat);
      scores.narrow(0, 0, sequence.length)
          .copy_(BlockAttention::ScoresOfKeys(
              rows.mask.narrow(0, sequence.source_start, sequence.length)));
    }
    local_->Attend({.queries = queries.Columns(global_width),
                    .keys = keys.Columns(global_width),
                    .values = values.Columns(global_width),
                    .count = filled,
                    .key_scores = scores.defined() ? scores.const_data_ptr<float>() : nullptr});
    if (global_width > 0) {
      WithGlobalAttention(
          [&](auto& attention) {
            AttendInPlace(attention, queries, keys, values, sequence.length, global_width);
          },
          [&](auto& attention) {
            AttendCausallyInPlace(attention, queries, keys, values, sequence.length);
          });
    }
    rows.AddAttended(sequence, queries);
  }
}

void Attention::Project(const AttentionByBlocks& rows, const AttentionByBlocks::Sequence& sequence,
                        const at::Tensor& out) const {
  const int64_t inner = rows.inner();
  const int64_t width = options_.dim_head;
  const int64_t global = global_heads();
  // Not causal, local queries stand one window further than their keys.
  const int64_t ahead = causal_ ? 0 : options_.local_window_size;
  const at::Tensor turns =
      Sinusoid(at::arange(sequence.length + ahead, at::kLong), inverse_frequencies_);
  ForBlocks(sequence.length, rows.block(), [&](int64_t begin, int64_t count, float* scratch) {
    const RowBlock normed = rows.x.Block(sequence.start + begin, count, scratch);
    const RowBlock queries = BlockOf(out, begin);
    const RowBlock keys = queries.Columns(inner);
    const RowBlock values = keys.Columns(inner);
    to_q_.Set(queries, normed, count);
    to_k_.Set(keys, normed, count);
    to_v_.Set(values, normed, count);
    if (rows.rotary.defined()) {
      RotateRows(queries, count, global, width, BlockOf(rows.rotary, begin));
      RotateRows(keys, count, global, width, BlockOf(rows.rotary, begin));
    }
    RotateHalves(queries.Columns(global * width), count, local_heads_, width,
                 BlockOf(turns, begin + ahead));
    RotateHalves(keys.Columns(global * width), count, local_heads_, width, BlockOf(turns, begin));
    if (!rows.mask.defined()) return;
    const bool* visible = rows.mask.const_data_ptr<bool>() + sequence.source_start + begin;
    for (int64_t i = 0; i < count; ++i) {
      if (!visible[i]) std::fill_n(values.Rows(i).data, global * width, 0.0F);
    }
  });
}

}  // namespace linserve::performer_pytorch
