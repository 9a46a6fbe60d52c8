#include <algorithm>

#include "attention/positions/positions.h"
#include "attention/rows/aten.h"
#include "models/encoder/attention.h"

// This part of Attention computes long sequences, block by block.
namespace linserve::encoder {
namespace {

// A block has so many rows: the caches hold their queries, keys and values.
constexpr int64_t kRowsOfBlock = 1024;

}  // namespace

bool Attention::WorksByBlocks(const Context& context) const {
  if (!IsLinear(*options_.method) || context.memory != nullptr) return false;
  if (context.layout.table) return false;  // a device has no such caches
  const std::vector<int64_t>& lengths = context.layout.lengths;
  return *std::max_element(lengths.begin(), lengths.end()) > kRowsOfBlock;
}

void Attention::ForBlocks(const at::Tensor& rows, int64_t sequence, const LayerNorm& norm,
                          const Context& context,
                          const std::function<void(const Block&)>& function) {
  const auto i = static_cast<size_t>(sequence);
  for (int64_t offset = 0; offset < context.layout.lengths[i]; offset += kRowsOfBlock) {
    const int64_t row = context.layout.starts[i] + offset;
    const int64_t count = std::min(kRowsOfBlock, context.layout.lengths[i] - offset);
    Block block{rows.narrow(0, row, count), {}, offset, {}};
    block.normed = norm(block.rows);
    if (context.mask.defined()) block.mask = context.mask.narrow(0, row, count).unsqueeze(0);
    function(block);
  }
}

at::Tensor Attention::Heads(const Linear& projection, const Block& block,
                            const at::Tensor& rotation) const {
  at::Tensor rows = projection(block.normed);
  if (rotation.defined()) {
    const int64_t count = rows.size(0);
    Rotate(rows, OneSequence(count), options_.heads, rotation.narrow(0, block.offset, count));
  }
  return rows.unflatten(-1, {options_.heads, options_.dim_head}).transpose(0, 1);
}

void Attention::AddByBlocks(at::Tensor& rows, const LayerNorm& norm, const Context& context,
                            const std::function<void(const at::Tensor& block)>& then) const {
  const auto add = [&](const Block& block, const at::Tensor& attended) {
    to_out_.AddTo(block.rows, attended.transpose(0, 1).flatten(1));
    then(block.rows);
  };
  for (int64_t sequence = 0; sequence < context.layout.sequences(); ++sequence) {
    RunningAttention running(*options_.method);
    if (options_.causal) {
      ForBlocks(rows, sequence, norm, context, [&](const Block& block) {
        add(block, running.Continue(Heads(to_q_, block, context.rotation),
                                    Heads(to_k_, block, context.rotation), Heads(to_v_, block, {}),
                                    block.mask));
      });
      continue;
    }
    ForBlocks(rows, sequence, norm, context, [&](const Block& block) {
      running.AddKeys(Heads(to_k_, block, context.rotation), Heads(to_v_, block, {}), block.mask);
    });
    ForBlocks(rows, sequence, norm, context, [&](const Block& block) {
      add(block, running.Attend(Heads(to_q_, block, context.rotation)));
    });
  }
}

}  // namespace linserve::encoder
