#include "models/linear_multihead_attention/linear_detr_layers.h"

#include "attention/rows/aten.h"

namespace linserve::linear_multihead_attention {
namespace {

// Computes x = norm(x + sublayer(x)), or with normalize_before x = x + sublayer(norm(x)).
template <typename Sublayer>
at::Tensor Residual(bool normalize_before, const LayerNorm& norm, const at::Tensor& x,
                    const Sublayer& sublayer) {
  return normalize_before ? sublayer(norm(x)).add_(x) : norm(sublayer(x).add_(x));
}

// Computes Residual() of a feed-forward, slice by slice. It overwrites x.
at::Tensor FeedForwardResidual(bool normalize_before, const LayerNorm& norm, const at::Tensor& x,
                               const FeedForward& feed_forward) {
  feed_forward.AddTo(x, x, normalize_before ? &norm : nullptr);
  return normalize_before ? x : norm(x);
}

// Returns what follows attention on each block of rows, to which that was added: its norm, if that
// comes behind it, and the feed-forward with its own `norm`.
BlockStep FeedForwardStep(bool normalize_before, const at::Tensor& rows,
                          const LayerNorm& attention_norm, const FeedForward& feed_forward,
                          const LayerNorm& norm) {
  return normalize_before ? feed_forward.Step(rows, rows, &norm)
                          : feed_forward.PostNormStep(rows, attention_norm, norm);
}

// Computes the attention of rows among themselves.
at::Tensor SelfAttention(const Attention& attention, const at::Tensor& x, const DetrRows& rows) {
  const at::Tensor placed = rows.WithPosition(x);
  return attention.Forward({.query = placed,
                            .key = placed,
                            .value = x,
                            .layout = rows.layout,
                            .key_layout = rows.layout,
                            .key_padding_mask = rows.padding_mask});
}

}  // namespace

at::Tensor DetrRows::WithPosition(const at::Tensor& rows) const {
  return position.defined() ? rows + position : rows;
}

DetrOptions DetrOptions::From(Params& params) {
  DetrOptions options;
  options.d_model = params.Positive("d_model", options.d_model);
  options.nhead = params.Positive("nhead", options.nhead);
  if (options.d_model % options.nhead != 0) {
    params.Fail("d_model", "a multiple of nhead = " + std::to_string(options.nhead));
  }
  options.dim_feedforward = params.Positive("dim_feedforward", options.dim_feedforward);
  const bool gelu = params.Choice("activation", "relu", {"relu", "gelu"}) == "gelu";
  options.activation = gelu ? Activation::kGelu : Activation::kRelu;
  options.normalize_before = params.Flag("normalize_before", false);
  options.seq_len = params.Positive("seq_len", options.seq_len);
  options.projection.ReadProjection(params, "corrected");
  // This class is linserve's own: no checkpoint depends on other words.
  params.Choice("param_sharing", "none", {"none", "headwise", "layerwise"});
  params.Ignore("dropout");
  return options;
}

void DetrOptions::ReadNumQueries(Params& params) {
  num_queries = params.Positive("num_queries", num_queries);
}

AttentionOptions DetrOptions::AttentionTo(int64_t longest_keys) const {
  AttentionOptions attention = projection;
  attention.embed_dim = attention.kdim = attention.vdim = d_model;
  attention.num_heads = nhead;
  attention.seq_len = longest_keys;
  return attention;
}

void DetrOptions::AddTo(NetworkNotes& notes) const { AttentionTo(seq_len).AddTo(notes); }

DetrEncoderLayer::DetrEncoderLayer(const DetrOptions& options)
    : normalize_before_(options.normalize_before),
      self_attn_(options.AttentionTo(options.seq_len)),
      feed_forward_(options.d_model, options.dim_feedforward, options.d_model, options.activation),
      norm1_(options.d_model),
      norm2_(options.d_model) {}

void DetrEncoderLayer::Declare(const Scope& scope) {
  self_attn_.Declare(scope / "self_attn", /*by_blocks=*/true);
  feed_forward_.Declare(scope, "linear1", "linear2");
  norm1_.Declare(scope / "norm1");
  norm2_.Declare(scope / "norm2");
}

double DetrEncoderLayer::Flops(int64_t length) const {
  return self_attn_.Flops(length, length) +
         static_cast<double>(feed_forward_.Flops()) * static_cast<double>(length);
}

void DetrEncoderLayer::Apply(at::Tensor& src, const DetrRows& rows) const {
  if (!self_attn_.WorksByBlocks() || !feed_forward_.packed()) return ApplyToTensors(src, rows);
  const Attention::Side side = rows.Side(src, normalize_before_ ? &norm1_ : nullptr);
  self_attn_.AddByBlocks(src, side, side,
                         FeedForwardStep(normalize_before_, src, norm1_, feed_forward_, norm2_));
}

void DetrEncoderLayer::ApplyToTensors(at::Tensor& src, const DetrRows& rows) const {
  const at::Tensor attended = Residual(normalize_before_, norm1_, src, [&](const at::Tensor& x) {
    return SelfAttention(self_attn_, x, rows);
  });
  src = FeedForwardResidual(normalize_before_, norm2_, attended, feed_forward_);
}

DetrDecoderLayer::DetrDecoderLayer(const DetrOptions& options)
    : normalize_before_(options.normalize_before),
      self_attn_(options.AttentionTo(options.num_queries)),
      multihead_attn_(options.AttentionTo(options.seq_len)),
      feed_forward_(options.d_model, options.dim_feedforward, options.d_model, options.activation),
      norm1_(options.d_model),
      norm2_(options.d_model),
      norm3_(options.d_model) {}

void DetrDecoderLayer::Declare(const Scope& scope) {
  self_attn_.Declare(scope / "self_attn", /*by_blocks=*/true);
  multihead_attn_.Declare(scope / "multihead_attn", /*by_blocks=*/true);
  feed_forward_.Declare(scope, "linear1", "linear2");
  norm1_.Declare(scope / "norm1");
  norm2_.Declare(scope / "norm2");
  norm3_.Declare(scope / "norm3");
}

double DetrDecoderLayer::Flops(int64_t queries, int64_t length) const {
  return self_attn_.Flops(queries, queries) + multihead_attn_.Flops(queries, length) +
         static_cast<double>(feed_forward_.Flops()) * static_cast<double>(queries);
}

void DetrDecoderLayer::Apply(at::Tensor& tgt, const DetrRows& rows, const at::Tensor& memory,
                             const DetrRows& memory_rows) const {
  if (!self_attn_.WorksByBlocks() || !feed_forward_.packed()) {
    return ApplyToTensors(tgt, rows, memory, memory_rows);
  }
  const auto side = [&](const LayerNorm& norm) {
    return rows.Side(tgt, normalize_before_ ? &norm : nullptr);
  };
  self_attn_.AddByBlocks(tgt, side(norm1_), side(norm1_),
                         normalize_before_ ? BlockStep() : norm1_.Step(tgt));
  multihead_attn_.AddByBlocks(
      tgt, side(norm2_), memory_rows.Side(memory),
      FeedForwardStep(normalize_before_, tgt, norm2_, feed_forward_, norm3_));
}

void DetrDecoderLayer::ApplyToTensors(at::Tensor& tgt, const DetrRows& rows,
                                      const at::Tensor& memory, const DetrRows& memory_rows) const {
  const at::Tensor related = Residual(normalize_before_, norm1_, tgt, [&](const at::Tensor& x) {
    return SelfAttention(self_attn_, x, rows);
  });
  const at::Tensor informed =
      Residual(normalize_before_, norm2_, related, [&](const at::Tensor& x) {
        return multihead_attn_.Forward({.query = rows.WithPosition(x),
                                        .key = memory_rows.WithPosition(memory),
                                        .value = memory,
                                        .layout = rows.layout,
                                        .key_layout = memory_rows.layout,
                                        .key_padding_mask = memory_rows.padding_mask});
      });
  tgt = FeedForwardResidual(normalize_before_, norm3_, informed, feed_forward_);
}

}  // namespace linserve::linear_multihead_attention
