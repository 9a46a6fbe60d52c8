#include <cmath>

#include "attention/blocks/block_linear_attention.h"
#include "attention/favor/stabilized_attention.h"
#include "attention/rows/aten.h"
#include "models/network/attention_by_blocks.h"
#include "models/performer_pytorch/attention.h"

// This part of Attention computes block by block.
namespace linserve::performer_pytorch {

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
  const int64_t heads = options_.heads;
  const int64_t width = options_.dim_head;
  if (is_softmaxed() && causal_) {
    BlockCausalAttention attention(heads, width, kDivisor);
    AddCausallyByBlocks(rows, attention);
  } else if (is_softmaxed()) {
    BlockLinearAttention attention(heads, width, std::sqrt(static_cast<double>(width)));
    linserve::AddByBlocks(rows, attention);
  } else if (causal_) {
    StabilizedCausalAttention attention(heads, width, block_features_, kAdded);
    AddCausallyByBlocks(rows, attention);
  } else {
    StabilizedAttention attention(heads, width, block_features_);
    linserve::AddByBlocks(rows, attention);
  }
}

}  // namespace linserve::performer_pytorch
