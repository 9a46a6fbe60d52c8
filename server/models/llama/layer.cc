#include "models/llama/layer.h"

#include <algorithm>
#include <functional>

#include "attention/blocks/sequence_groups.h"
#include "attention/products/block_product.h"
#include "attention/rows/aten.h"
#include "attention/rows/slices.h"
#include "models/network/self_attention_by_blocks.h"

namespace linserve::llama {
namespace {

// Calls function(row, count, scratch) for blocks of a sequence's rows, of which something is made
// that is read together. Now and then others get a turn.
void ByBlocks(int64_t rows, int64_t scratch_elements,
              const std::function<void(int64_t, int64_t, float*)>& function) {
  constexpr int64_t kBlocksOfThread = 4;
  const int64_t most = kBlocksOfThread * BlockThreads() * kBlockRows;
  for (int64_t first = 0; first < rows; first += most) {
    const int64_t some = std::min(most, rows - first);
    ForBlocks(some, scratch_elements, [&](int64_t row, int64_t count, float* scratch) {
      function(first + row, count, scratch);
    });
    RowsRead(some);
  }
}

}  // namespace

Layer::Layer(const Options& options, const LayerKind& kind)
    : options_(options),
      attention_(options, kind),
      attention_norm_(LayerNorm::OfMeanSquare(options.dim, options.eps, options.norms_from_one)),
      attended_norm_(attention_norm_),
      feed_forward_(options.dim, options.inner, options.dim, options.activation,
                    /*with_gate=*/true, options.inner_bias),
      inner_norm_(attention_norm_),
      outer_norm_(attention_norm_) {
  if (kind.convolves) convolution_.emplace(options);
}

void Layer::Declare(const Scope& layer) {
  const Names& names = options_.names;
  if (convolution_) {
    convolution_->Declare(layer / "conv");
  } else {
    attention_.Declare(layer / "self_attn");
  }
  const Scope mlp = layer / names.feed_forward;
  feed_forward_.w2.factor = options_.added_factor;
  if (options_.joined) {
    feed_forward_.Declare(mlp, "gate_up_proj", "down_proj");
  } else {
    feed_forward_.DeclareGated(mlp / names.gate, mlp / names.inner, mlp / names.outer);
  }
  const char* inner = options_.norms_behind ? "pre_feedforward_layernorm" : names.inner_norm;
  if (options_.norms_before) {
    attention_norm_.Declare(layer / names.attention_norm);
    inner_norm_.Declare(layer / inner);
  }
  if (options_.norms_behind) {
    attended_norm_.Declare(layer / "post_attention_layernorm");
    outer_norm_.Declare(layer / "post_feedforward_layernorm");
  }
}

double Layer::Flops(int64_t length) const {
  return (convolution_ ? convolution_->Flops(length) : attention_.Flops(length)) +
         static_cast<double>(feed_forward_.Flops()) * static_cast<double>(length);
}

void Layer::Apply(at::Tensor& rows, const Context& context) const {
  if (!packed()) return ApplyToTensors(rows, context);
  return convolution_ ? ConvolveByBlocks(rows, context) : AttendByBlocks(rows, context);
}

void Layer::ApplyToTensors(at::Tensor& rows, const Context& context) const {
  const at::Tensor normed = Read(rows, context).Normed();
  const at::Tensor attended = convolution_ ? convolution_->Convolved(normed, context.layout)
                                           : attention_.Attended(normed, context);
  if (options_.norms_behind) {
    rows.add_(attended_norm_(out()(attended)));
    return AddByRows(rows, rows, [this](const at::Tensor& some) {
      return outer_norm_(feed_forward_(NormedRows{some, Before(inner_norm_)}.Normed()));
    });
  }
  out().AddProduct(rows, attended);
  if (out().with_bias) rows.add_(out().bias);
  feed_forward_.AddWithoutBias(rows, {rows, &inner_norm_});
  if (options_.inner_bias) rows.add_(feed_forward_.w2.bias);
}

NormedRows Layer::Read(const at::Tensor& rows, const Context& context) const {
  NormedRows read{rows, Before(attention_norm_)};
  if (convolution_) read.visible = context.mask;
  return read;
}

void Layer::ConvolveByBlocks(const at::Tensor& rows, const Context& context) const {
  const NormedRows read = Read(rows, context);
  const int64_t parts = kBlockRows * convolution_->width();
  const int64_t elements = std::max(parts + kBlockRows * options_.dim, FinishElements());
  ForSequenceGroups(
      context.layout, elements,
      [&](const SequenceGroup& group, float* scratch) {
        const RowBlock all{scratch, convolution_->width()};
        convolution_->Project(read.Block(group.row, group.rows, scratch + parts), group.rows, all);
        for (size_t i = group.first; i < group.end(); ++i) {
          const int64_t start = context.layout.starts[i] - group.row;
          convolution_->Convolve(all.Rows(start), 0, context.layout.lengths[i]);
        }
        Finish(BlockOf(rows, group.row), convolution_->Result(all), group.rows, scratch);
      },
      [&](size_t sequence) {
        const int64_t start = context.layout.starts[sequence];
        const int64_t length = context.layout.lengths[sequence];
        const at::Tensor all = at::empty({length, convolution_->width()}, rows.options());
        ByBlocks(length, kBlockRows * options_.dim,
                 [&](int64_t row, int64_t count, float* scratch) {
                   convolution_->Project(read.Block(start + row, count, scratch), count,
                                         BlockOf(all, row));
                 });
        ForSlicedBlocks(length, FinishElements(), [&](int64_t row, int64_t count, float* scratch) {
          const RowBlock own = BlockOf(all, row);
          convolution_->Convolve(own, row, count);
          Finish(BlockOf(rows, start + row), convolution_->Result(own), count, scratch);
        });
      });
}

void Layer::AttendByBlocks(const at::Tensor& rows, const Context& context) const {
  linserve::Apply(SelfAttentionByBlocks{
      .rows = rows,
      .layout = context.layout,
      .attention = attention_.blocks(),
      .width = attention_.width(),
      .keys = attention_.keys(),
      .values = attention_.values(),
      .scratch_elements = FinishElements(),
      .project =
          [&](int64_t row, int64_t count, const RowBlock& qkv, float* scratch) {
            attention_.Project(Read(rows, context).Block(row, count, scratch), count, qkv);
          },
      .turn = [&](const RowBlock& qkv, int64_t place,
                  int64_t count) { attention_.Turn(qkv, place, count, context); },
      .scores =
          [&](int64_t start) {
            BlockAttention::Scores scores;
            if (context.key_scores.defined()) {
              scores.of_keys = context.key_scores.const_data_ptr<float>() + start;
            }
            return scores;
          },
      .finish = [&](const RowBlock& some, const RowBlock& attended, int64_t count,
                    float* scratch) { Finish(some, attended, count, scratch); }});
}

int64_t Layer::ElementsBeforeAdded() const {
  return std::max(SelfAttentionByBlocks::AttendedElements(attention_.width()),
                  feed_forward_.ScratchElements());
}

int64_t Layer::FinishElements() const {
  if (!options_.norms_behind) return feed_forward_.ScratchElements();
  return ElementsBeforeAdded() + kBlockRows * options_.dim;
}

void Layer::Finish(const RowBlock& rows, const RowBlock& attended, int64_t count,
                   float* scratch) const {
  if (options_.norms_behind) return FinishBehindNorms(rows, attended, count, scratch);
  out().Add(rows, attended, count);
  feed_forward_.Add(rows, rows, count, &inner_norm_, scratch);
}

void Layer::FinishBehindNorms(const RowBlock& rows, const RowBlock& attended, int64_t count,
                              float* scratch) const {
  const RowBlock added{scratch + ElementsBeforeAdded(), options_.dim};
  const auto add = [&](const LayerNorm& norm) {
    norm.Set(added, added, count);
    AddRows(rows, count, options_.dim, added);
  };
  out().Set(added, attended, count);
  add(attended_norm_);
  std::fill_n(added.data, count * options_.dim, 0.0F);
  feed_forward_.Add(added, rows, count, Before(inner_norm_), scratch);
  add(outer_norm_);
}

}  // namespace linserve::llama
