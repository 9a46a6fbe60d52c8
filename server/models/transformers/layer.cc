#include "models/transformers/layer.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "attention/blocks/sequence_groups.h"
#include "attention/products/block_product.h"
#include "attention/products/kernel_rows.h"
#include "attention/rows/aten.h"
#include "attention/rows/slices.h"
#include "models/transformers/declare_norm.h"
#include "models/transformers/names.h"

namespace linserve::transformers {

namespace {

// Queries are read up to a multiple of the rows that there are kernels for.
constexpr int64_t kReadableRows = kBlockRows + kFewestKernelRows;
// A thread lays out so many blocks of keys before others may get a turn.
constexpr int64_t kBlocksOfThread = 4;

}  // namespace

Layer::Layer(const Options& options, const LayerKind& kind, bool first)
    : options_(options),
      first_(first),
      attention_(options, kind),
      attention_norm_(options.dim, options.eps, options.norm_bias),
      gate_(options.dim, options.inner, options.inner_bias),
      inner_(options.dim, options.inner, options.inner_bias),
      feed_forward_(options.dim, options.inner, options.dim, options.activation, options.gated,
                    options.inner_bias),
      inner_norm_(options.dim, options.eps, options.norm_bias) {
  feed_forward_.w2.with_bias = options.outer_bias;
}

void Layer::Declare(const Scope& layer) {
  const Names& names = NamesOf(options_.family);
  attention_.Declare(layer);
  if (!options_.pre_norm || !first_) DeclareNorm(layer / names.attention_norm, attention_norm_);
  if (names.gate != nullptr) {
    DeclareGated(layer);
  } else {
    feed_forward_.Declare(layer, names.inner, names.outer);
  }
  DeclareNorm(layer / names.inner_norm, inner_norm_);
}

void Layer::DeclareGated(const Scope& layer) {
  const Names& names = NamesOf(options_.family);
  gate_.DeclareUnpacked(layer / names.gate);
  inner_.DeclareUnpacked(layer / names.inner);
  layer.Packs(gate_.weight);
  layer.Packs(inner_.weight);
  layer.AfterLoading([this](DType products) {
    Linear& both = feed_forward_.w1;
    both.weight = at::cat({gate_.weight, inner_.weight});
    gate_.weight.reset();
    inner_.weight.reset();
    both.Pack(products);
  });
  feed_forward_.w2.Declare(layer / names.outer);
}

double Layer::Flops(int64_t length) const {
  return attention_.Flops(length) +
         static_cast<double>(feed_forward_.Flops()) * static_cast<double>(length);
}

void Layer::Apply(at::Tensor& rows, const Context& context) const {
  return packed() ? ApplyByBlocks(rows, context) : ApplyToTensors(rows, context);
}

void Layer::ApplyToTensors(at::Tensor& rows, const Context& context) const {
  const Linear& out = attention_.out();
  const Linear& outer = feed_forward_.w2;
  // Products add themselves to the rows. With norms behind the sums a bias is left to the norm, and
  // takes no launch of its own; with norms before them the rows themselves need it.
  out.AddProduct(rows, attention_.Attended(NormedRows{rows, NormBefore()}.Normed(), context));
  if (options_.pre_norm) {
    if (out.with_bias) rows.add_(out.bias);
    feed_forward_.AddWithoutBias(rows, {rows, &inner_norm_});
    if (outer.with_bias) rows.add_(outer.bias);
    return;
  }
  rows = attention_norm_(rows, out.bias);
  feed_forward_.AddWithoutBias(rows, {rows});
  rows = inner_norm_(rows, outer.bias);
}

void Layer::ApplyByBlocks(at::Tensor& rows, const Context& context) const {
  if (attention_.by_landmarks()) {  // which are made of a whole sequence
    for (size_t i = 0; i < context.layout.lengths.size(); ++i) ApplyToSequence(rows, i, context);
    return;
  }
  ForSequenceGroups(
      context.layout, ScratchElements(),
      [&](const SequenceGroup& group, float* scratch) {
        ApplyToGroup(rows, group, context, scratch);
      },
      [&](size_t sequence) { ApplyToSequence(rows, sequence, context); });
}

int64_t Layer::ScratchElements() const {
  const BlockAttention& blocks = attention_.blocks();
  const int64_t attended = kReadableRows * attention_.width() + kBlockRows * options_.dim +
                           blocks.KeyElements(kBlockRows) + blocks.ScratchElements();
  const int64_t by_landmarks =
      kBlockRows * options_.dim + BlockLandmarks::ScratchElements(attention_.landmarks());
  return std::max({attended, attention_.by_landmarks() ? by_landmarks : 0,
                   kReadableRows * options_.dim + feed_forward_.ScratchElements()});
}

void Layer::ApplyToGroup(at::Tensor& rows, const SequenceGroup& group, const Context& context,
                         float* scratch) const {
  const BlockAttention& blocks = attention_.blocks();
  const RowBlock qkv{scratch, attention_.width()};
  float* normed = qkv.Rows(kReadableRows).data;
  float* memory = normed + kBlockRows * options_.dim;
  float* own = memory + blocks.KeyElements(kBlockRows);
  attention_.Project(NormedRows{rows, NormBefore()}.Block(group.row, group.rows, normed),
                     group.rows, qkv);
  for (size_t i = group.first; i < group.end(); ++i) {
    const int64_t start = context.layout.starts[i];
    const int64_t length = context.layout.lengths[i];
    const RowBlock queries = qkv.Rows(start - group.row);
    attention_.Rotate(queries, 0, length, context);
    blocks.LayOut(queries.Columns(options_.dim), queries.Columns(2 * options_.dim), length, memory,
                  own);
    blocks.Attend(queries, 0, length, {memory, length, kBlockRows},
                  attention_.ScoresOf(start, context), queries, own);
    attention_.AddConvolved(queries, length, 0, length, queries);
  }
  Finish(BlockOf(rows, group.row), qkv, group.rows, scratch);
}

void Layer::ApplyToSequence(at::Tensor& rows, size_t sequence, const Context& context) const {
  const int64_t start = context.layout.starts[sequence];
  const int64_t length = context.layout.lengths[sequence];
  const BlockAttention& blocks = attention_.blocks();
  const at::Tensor qkv =
      at::empty({length + kFewestKernelRows, attention_.width()}, rows.options());
  const at::Tensor memory = LayOutKeys(rows, sequence, context, qkv);
  const BlockAttention::Keys keys{memory.mutable_data_ptr<float>(), length,
                                  BlockAttention::KeyBlockRows(length)};
  const BlockAttention::Scores scores = attention_.ScoresOf(start, context);
  std::optional<BlockLandmarks> landmarks;
  if (attention_.by_landmarks()) {
    landmarks.emplace(attention_.landmarks(), qkv, blocks, keys, scores);
  }
  ForSlicedBlocks(length, ScratchElements(), [&](int64_t begin, int64_t count, float* scratch) {
    const RowBlock attended{scratch, options_.dim};
    const RowBlock queries = BlockOf(qkv, begin);
    float* own = attended.Rows(kBlockRows).data;
    if (landmarks) {
      landmarks->Attend(queries, count, attended, own);
    } else {
      blocks.Attend(queries, begin, count, keys, scores, attended, own);
    }
    attention_.AddConvolved(BlockOf(qkv), length, begin, count, attended);
    Finish(BlockOf(rows, start + begin), attended, count, scratch);
  });
}

at::Tensor Layer::LayOutKeys(const at::Tensor& rows, size_t sequence, const Context& context,
                             const at::Tensor& qkv) const {
  const int64_t start = context.layout.starts[sequence];
  const int64_t length = context.layout.lengths[sequence];
  const BlockAttention& blocks = attention_.blocks();
  const int64_t block_rows = BlockAttention::KeyBlockRows(length);
  const int64_t count = (length + block_rows - 1) / block_rows;
  at::Tensor memory = at::empty({count, blocks.KeyElements(block_rows)}, rows.options());
  const int64_t normed = kBlockRows * options_.dim;
  const auto lay_out = [&](int64_t block, float* scratch) {
    const int64_t begin = block * block_rows;
    const int64_t some = std::min(block_rows, length - begin);
    const RowBlock laid = BlockOf(qkv, begin);
    attention_.Project(NormedRows{rows, NormBefore()}.Block(start + begin, some, scratch), some,
                       laid);
    attention_.Rotate(laid, begin, some, context);
    blocks.LayOut(laid.Columns(options_.dim), laid.Columns(2 * options_.dim), some,
                  BlockOf(memory, block).data, scratch + normed);
  };
  const int64_t at_once = kBlocksOfThread * BlockThreads();
  for (int64_t first = 0; first < count; first += at_once) {
    const int64_t end = std::min(count, first + at_once);
    ForSideBySide(first, end, normed + blocks.ScratchElements(), lay_out);
    RowsRead(std::min(length, end * block_rows) - first * block_rows);
  }
  return memory;
}

void Layer::Finish(const RowBlock& rows, const RowBlock& attended, int64_t count,
                   float* scratch) const {
  attention_.AddTo(rows, attended, count);
  if (options_.pre_norm) return feed_forward_.Add(rows, rows, count, &inner_norm_, scratch);
  attention_norm_.Set(rows, rows, count);
  feed_forward_.Add(rows, rows, count, nullptr, scratch);
  inner_norm_.Set(rows, rows, count);
}

}  // namespace linserve::transformers
