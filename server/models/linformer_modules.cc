#include "models/linformer_modules.h"

#include <algorithm>
#include <utility>

#include "attention/aten.h"
#include "attention/block_product.h"
#include "attention/block_slots.h"
#include "attention/linformer_attention.h"

namespace linserve {
namespace {

int64_t KeyWidth(const LinformerAttentionOptions& options) {
  return options.dim_head * (options.one_kv_head ? 1 : options.heads);
}

}  // namespace

LinformerAttentionOptions LinformerAttentionOptions::From(Params& params) {
  LinformerAttentionOptions options;
  options.dim = params.Positive("dim");
  options.seq_len = params.Positive("seq_len");
  options.k = params.Positive("k", 256);
  options.heads = params.Positive("heads", 8);
  // The package asserts this even when dim_head is given.
  if (options.dim % options.heads != 0) {
    params.Fail("dim", "a multiple of heads = " + std::to_string(options.heads));
  }
  options.dim_head = params.Positive("dim_head", options.dim / options.heads);
  options.one_kv_head = params.Flag("one_kv_head", false);
  options.share_kv = params.Flag("share_kv", false);
  params.Ignore("dropout");
  return options;
}

LinformerSelfAttention::LinformerSelfAttention(const LinformerAttentionOptions& options)
    : options_(options),
      to_q_(options.dim, options.dim_head * options.heads, /*biased=*/false),
      to_k_(options.dim, KeyWidth(options), /*biased=*/false),
      to_v_(options.dim, KeyWidth(options), /*biased=*/false),
      to_out_(options.dim_head * options.heads, options.dim) {}

void LinformerSelfAttention::Declare(const Scope& scope) {
  to_q_.Declare(scope / "to_q");
  to_k_.Declare(scope / "to_k");
  scope.Declare("proj_k", proj_k_, {options_.seq_len, options_.k}, Init::kNormal);
  if (!options_.share_kv) {
    to_v_.Declare(scope / "to_v");
    scope.Declare("proj_v", proj_v_, {options_.seq_len, options_.k}, Init::kNormal);
  }
  to_out_.Declare(scope / "to_out");
  scope.AfterLoading([this] { Prepare(); });
}

void LinformerSelfAttention::Prepare() {
  if (!packed() || packed_k_.defined()) return;
  const auto pack = [](at::Tensor& projection) {
    LengthWeights packed(projection.t().unsqueeze(0), {});
    projection.reset();
    return packed;
  };
  packed_k_ = pack(proj_k_);
  // share_kv: the values are the keys, projected by the same matrix.
  packed_v_ = options_.share_kv ? packed_k_ : pack(proj_v_);
}

void LinformerSelfAttention::AddTo(const at::Tensor& target, const NormedRows& x,
                                   const AxisLayout& layout, const NormedRows& source,
                                   const AxisLayout& source_layout) const {
  if (packed()) return AddByBlocks(target, x, layout, source, source_layout, {});
  const at::Tensor queries = x.Normed();
  const at::Tensor rows = &source.rows == &x.rows ? queries : source.Normed();
  const at::Tensor keys = ProjectLength(to_k_(rows), proj_k_, source_layout);
  // share_kv: the values are the keys, projected by the same matrix.
  const at::Tensor values =
      options_.share_kv ? keys : ProjectLength(to_v_(rows), proj_v_, source_layout);
  target.add_(to_out_(AttendToSlots(to_q_(queries), keys, values, options_.heads, layout)));
}

void LinformerSelfAttention::AddByBlocks(const at::Tensor& target, const NormedRows& x,
                                         const AxisLayout& layout, const NormedRows& source,
                                         const AxisLayout& source_layout,
                                         const BlockStep& then) const {
  const int64_t inner = options_.heads * options_.dim_head;
  const int64_t block = kBlockRows * options_.dim;  // elements
  BlockSlots slots(
      {options_.k, options_.heads, KeyWidth(options_) / options_.dim_head, options_.dim_head},
      options_.share_kv);
  const int64_t own_scratch = block + 2 * kBlockRows * inner + slots.ScratchElements();
  for (size_t i = 0; i < layout.starts.size(); ++i) {
    Project(source, source_layout.starts[i], source_layout.lengths[i], slots);
    ForSlicedBlocks(layout.lengths[i], std::max(own_scratch, then.scratch_elements),
                    [&](int64_t begin, int64_t count, float* scratch) {
                      const int64_t row = layout.starts[i] + begin;
                      const RowBlock queries{scratch + block, inner};
                      const RowBlock attended = queries.Rows(kBlockRows);
                      to_q_.Set(queries, x.Block(row, count, scratch), count);
                      slots.Attend(queries, begin, count, attended, attended.Rows(kBlockRows).data);
                      to_out_.Add(BlockOf(target, row), attended, count);
                      if (then.apply) then.apply(row, count, scratch);
                    });
  }
}

void LinformerSelfAttention::Project(const NormedRows& source, int64_t start, int64_t length,
                                     BlockSlots& slots) const {
  const bool shared = options_.share_kv;
  const int64_t width = KeyWidth(options_);
  // E·(x·Wᵀ) or (E·x)·Wᵀ, for which W meets slots and not rows.
  if (options_.k * options_.dim * width + length * options_.k * options_.dim <
      length * width * (options_.dim + options_.k)) {
    const auto copy = [&](int64_t row, int64_t count, const RowBlock& out, float*) {
      source.Copy(start + row, count, out);
    };
    const auto to_keys = [&](const RowBlock& rows, int64_t count, const RowBlock& out) {
      to_k_.Set(out, rows, count);
    };
    const auto to_values = [&](const RowBlock& rows, int64_t count, const RowBlock& out) {
      to_v_.Set(out, rows, count);
    };
    return slots.ProjectSource(length, options_.dim, packed_k_, packed_v_, copy, to_keys,
                               to_values);
  }
  slots.ProjectKeys(length, packed_k_, packed_v_, kBlockRows * options_.dim,
                    [&](int64_t row, int64_t count, const RowBlock& out, float* scratch) {
                      const RowBlock rows = source.Block(start + row, count, scratch);
                      to_k_.Set(out, rows, count);
                      if (!shared) to_v_.Set(out.Columns(width), rows, count);
                    });
}

double LinformerSelfAttention::Flops(int64_t queries, int64_t keys) const {
  const int64_t projections = options_.share_kv ? 1 : 2;
  const int64_t per_key = projections * (to_k_.Flops() + 2 * options_.k * KeyWidth(options_));
  const int64_t per_query =
      to_q_.Flops() + to_out_.Flops() + 4 * options_.k * options_.heads * options_.dim_head;
  return static_cast<double>(per_key) * static_cast<double>(keys) +
         static_cast<double>(per_query) * static_cast<double>(queries);
}

LinformerStack::LinformerStack(const LinformerAttentionOptions& options, int64_t depth,
                               bool reversible)
    : reversible_(reversible) {
  for (int64_t i = 0; i < depth; ++i) {
    layers_.push_back({LayerNorm(options.dim), LinformerSelfAttention(options),
                       LayerNorm(options.dim), FeedForward(options.dim, 4 * options.dim)});
  }
}

void LinformerStack::Declare(const Scope& scope) {
  const Scope net = scope / "net";
  for (size_t i = 0; i < layers_.size(); ++i) {
    const auto index = static_cast<int64_t>(i);
    const Scope layer = reversible_ ? net / "blocks" / index : net / "layers" / index;
    const Scope attention = reversible_ ? layer / "f" / "net" : layer / "0";
    const Scope feed_forward = reversible_ ? layer / "g" / "net" : layer / "1";
    layers_[i].attention.Declare(attention / "fn");
    layers_[i].attention_norm.Declare(attention / "norm");
    layers_[i].feed_forward.Declare(feed_forward / "fn");
    layers_[i].feed_forward_norm.Declare(feed_forward / "norm");
  }
}

double LinformerStack::Flops(int64_t length) const {
  double flops = 0;
  for (const Layer& layer : layers_) {
    flops += layer.attention.Flops(length, length) +
             static_cast<double>(layer.feed_forward.Flops()) * static_cast<double>(length);
  }
  return flops;
}

LinformerStack::Run::Run(const LinformerStack& stack, at::Tensor rows, AxisLayout layout)
    : stack_(stack), layout_(std::move(layout)), stream_(std::move(rows)) {
  if (stack_.reversible_) second_stream_ = stream_.clone();
}

bool LinformerStack::Run::Step() {
  if (layer_ == stack_.layers_.size()) return false;
  const Layer& layer = stack_.layers_[layer_++];
  // Plain: one stream is read and added to. Reversible: u += f(v), then v += g(u).
  at::Tensor& u = stack_.reversible_ ? second_stream_ : stream_;
  const NormedRows normed{stream_, &layer.attention_norm};
  const FeedForward& feed_forward = layer.feed_forward;
  if (layer.attention.packed() && feed_forward.packed()) {
    layer.attention.AddByBlocks(u, normed, layout_, normed, layout_,
                                feed_forward.Step(stream_, u, &layer.feed_forward_norm));
  } else {
    layer.attention.AddTo(u, normed, layout_, normed, layout_);
    feed_forward.AddTo(stream_, u, &layer.feed_forward_norm);
  }
  return layer_ < stack_.layers_.size();
}

at::Tensor LinformerStack::Run::Take() {
  if (stack_.reversible_) stream_.add_(second_stream_);
  return std::move(stream_);
}

}  // namespace linserve
