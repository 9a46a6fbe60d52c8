#include "attention/rows/aten.h"
#include "models/linear_attention_transformer/attention.h"
#include "models/network/attention_by_blocks.h"

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
  const AttentionByBlocks rows{.to_q = to_q_,
                               .to_k = to_k_,
                               .to_v = to_v_,
                               .to_out = to_out_,
                               .heads = options_.heads,
                               .hides_keys = true,
                               .target = target,
                               .x = x,
                               .layout = layout,
                               .source = source,
                               .source_layout = source_layout.layout,
                               .mask = source_layout.mask,
                               .rotary = rotary,
                               .then = then};
  if (options_.causal) {
    BlockCausalAttention attention(options_.heads, options_.dim_head);
    AddCausallyByBlocks(rows, attention);
  } else {
    BlockLinearAttention attention(options_.heads, options_.dim_head);
    linserve::AddByBlocks(rows, attention);
  }
}

}  // namespace linserve::linear_attention_transformer
