#include <algorithm>
#include <cmath>

#include "attention/blocks/block_efficient_attention.h"
#include "attention/blocks/block_linear_attention.h"
#include "attention/blocks/block_mapped_attention.h"
#include "attention/linear/kernel_attention.h"
#include "attention/linear/taylor_attention.h"
#include "attention/rows/aten.h"
#include "models/encoder/attention.h"
#include "models/network/attention_by_blocks.h"
#include "models/network/self_attention_by_blocks.h"

// This part of Attention computes block by block.
namespace linserve::encoder {
namespace {

BlockMappedAttention MappedAttention(const Options& options) {
  const bool taylor = *options.method == AttentionMethod::kTaylor;
  const FeatureForm form =
      taylor ? TaylorForm() : KernelForm(*options.method == AttentionMethod::kKernelNormalized);
  const BlockFeatures map =
      taylor ? BlockFeatures::Taylor(options.dim_head) : BlockFeatures(options.dim_head);
  return {map,
          {.heads = options.heads,
           .features = map.features(),
           .value_width = options.dim_head,
           .floor = form.floor.value_or(0),
           .divided = form.floor.has_value()}};
}

}  // namespace

bool Attention::WorksByBlocks(const Context& context) const {
  return to_q_.packed && context.memory == nullptr;
}

void Attention::AddByBlocks(const at::Tensor& rows, const LayerNorm& norm, const Context& context,
                            const BlockStep& then) const {
  if (!IsLinear(*options_.method)) return AddSoftmax(rows, norm, context, then);
  const NormedRows normed{rows, &norm};
  const AttentionByBlocks by_blocks{.to_q = to_q_,
                                    .to_k = to_k_,
                                    .to_v = to_v_,
                                    .to_out = to_out_,
                                    .heads = options_.heads,
                                    .hides_from = 0,
                                    .target = rows,
                                    .x = normed,
                                    .layout = context.layout,
                                    .source = normed,
                                    .source_layout = context.layout,
                                    .mask = context.mask,
                                    .rotary = context.rotation,
                                    .then = then};
  if (*options_.method == AttentionMethod::kEfficient) {
    if (options_.causal) {
      BlockEfficientAttention attention(options_.heads, options_.dim_head);
      return AddCausallyByBlocks(by_blocks, attention);
    }
    const double factor = std::sqrt(static_cast<double>(options_.dim_head));
    BlockLinearAttention attention({.heads = options_.heads, .dim_head = options_.dim_head},
                                   factor);
    return linserve::AddByBlocks(by_blocks, attention);
  }
  BlockMappedAttention attention = MappedAttention(options_);
  options_.causal ? AddCausallyByBlocks(by_blocks, attention)
                  : linserve::AddByBlocks(by_blocks, attention);
}

at::Tensor Attention::RowsThatSee(const Context& context) const {
  if (!context.mask.defined()) return {};
  at::Tensor seeing = context.mask.clone();
  bool* sees = seeing.mutable_data_ptr<bool>();
  for (size_t i = 0; i < context.layout.starts.size(); ++i) {
    bool* first = sees + context.layout.starts[i];
    bool* end = first + context.layout.lengths[i];
    std::fill(options_.causal ? std::find(first, end, true) : first, end,
              std::find(first, end, true) != end);
  }
  return seeing;
}

void Attention::AddSoftmax(const at::Tensor& rows, const LayerNorm& norm, const Context& context,
                           const BlockStep& then) const {
  const int64_t inner = options_.inner();
  const RowBlock all = BlockOf(rows);
  const at::Tensor key_scores = BlockAttention::ScoresOfKeys(context.mask);
  // BlockAttention has rows that see nothing average all values, where they are zeros here.
  const at::Tensor seeing = RowsThatSee(context);
  linserve::Apply(SelfAttentionByBlocks{
      .rows = rows,
      .layout = context.layout,
      .attention = softmax_,
      .width = 3 * inner,
      .keys = inner,
      .values = 2 * inner,
      .scratch_elements = then.scratch_elements,
      .project =
          [&](int64_t row, int64_t count, const RowBlock& qkv, float* scratch) {
            const RowBlock normed = NormedRows{rows, &norm}.Block(row, count, scratch);
            to_q_.Set(qkv, normed, count);
            to_k_.Set(qkv.Columns(inner), normed, count);
            to_v_.Set(qkv.Columns(2 * inner), normed, count);
          },
      .turn =
          [&](const RowBlock& qkv, int64_t place, int64_t count) {
            if (!context.rotation.defined()) return;
            const RowBlock table = BlockOf(context.rotation, place);
            RotateRows(qkv, count, 2 * options_.heads, options_.dim_head, table);
          },
      .scores =
          [&](int64_t start) {
            BlockAttention::Scores scores;
            if (key_scores.defined()) scores.of_keys = key_scores.const_data_ptr<float>() + start;
            return scores;
          },
      .finish =
          [&](const RowBlock& some, const RowBlock& attended, int64_t count, float* scratch) {
            const int64_t row = (some.data - all.data) / all.stride;
            for (int64_t i = 0; i < count && seeing.defined(); ++i) {
              if (seeing.const_data_ptr<bool>()[row + i]) continue;
              std::fill_n(attended.Rows(i).data, inner, 0.0F);
            }
            to_out_.Add(some, attended, count);
            then.apply(row, count, scratch);
          }});
}

}  // namespace linserve::encoder
