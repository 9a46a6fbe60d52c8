#include "models/linear_multihead_attention/linear_multihead_attention.h"

#include <algorithm>
#include <utility>

#include "attention/rows/aten.h"
#include "attention/rows/spans.h"
#include "models/linear_multihead_attention/attention.h"

namespace linserve::linear_multihead_attention {
namespace {

class AttentionNetwork : public Network {
 public:
  AttentionNetwork(const AttentionOptions& options, bool need_weights)
      : options_(options), need_weights_(need_weights), attention_(options) {}

  void Declare(const Scope& scope) override { attention_.Declare(scope); }
  Signature signature() const override;

  // The weights are counted once, though they are made anew where they are asked for.
  double Flops(int64_t length) const override {
    return attention_.Flops(length, std::min(length, options_.longest()));
  }

  NetworkNotes Notes() const override {
    NetworkNotes notes;
    options_.AddTo(notes);
    return notes;
  }

  SessionPlan Sessions() const override { return SessionPlan::RefusedByProjections(); }

  std::unique_ptr<Pass> Begin(TensorBatch batch) const override;

 private:
  class AttentionPass;

  AttentionOptions options_;
  bool need_weights_;
  Attention attention_;
};

Signature AttentionNetwork::signature() const {
  // The package is length first, but for its key_padding_mask (B, S) and its weights (B, L, slots).
  constexpr BatchAxis kLengthFirst = BatchAxis::kSecond;
  const Axis n = Axis::Ragged('n');
  const Axis m = Axis::Ragged('m');
  const std::vector<Axis> rows = {n, Axis::Fixed(options_.embed_dim)};
  Signature signature;
  signature.inputs = {
      {.name = "query", .axes = rows, .batch_axis = kLengthFirst},
      {.name = "key", .axes = {m, Axis::Fixed(options_.kdim)}, .batch_axis = kLengthFirst},
      {.name = "value", .axes = {m, Axis::Fixed(options_.vdim)}, .batch_axis = kLengthFirst},
      {.name = "key_padding_mask",
       .kind = InputKind::kMask,
       .axes = {m},
       .optional = true,
       .hides = true},
      {.name = "attn_mask",
       .kind = InputKind::kAttentionMask,
       .axes = {Axis::Fixed(options_.num_heads), n, Axis::Fixed(options_.proj_k)},
       .optional = true,
       .batch_axis = BatchAxis::kFolded,
       .broadcast = true}};
  signature.outputs = {{.name = "y", .axes = rows, .batch_axis = kLengthFirst}};
  if (need_weights_) {
    signature.outputs.push_back({.name = "weights", .axes = {n, Axis::Fixed(options_.slots())}});
  }
  signature.limits = {options_.Limit('m')};
  signature.request_is_unit = options_.package_layout;
  return signature;
}

class AttentionNetwork::AttentionPass : public Pass {
 public:
  AttentionPass(const Attention& attention, TensorBatch batch)
      : attention_(attention),
        batch_(std::move(batch)),
        layout_(ComputedLayout(batch_.axes.at('n'), batch_.padding)) {}

  bool Step() override {
    const PlacedLayout keys = ComputedLayout(batch_.axes.at('m'), batch_.padding);
    projected_ = attention_.Project({.query = batch_["query"],
                                     .key = batch_["key"],
                                     .value = batch_["value"],
                                     .layout = layout_,
                                     .key_layout = keys,
                                     .key_padding_mask = batch_.Find("key_padding_mask"),
                                     .attn_mask = batch_.Find("attn_mask")});
    return false;
  }

  // Both outputs, y and the weights, are computed once they are asked for.
  at::Tensor Output(const std::string& name, int64_t begin, int64_t end) override {
    at::Tensor& rows = name == "y" ? y_ : weights_;
    if (!rows.defined()) {
      rows = name == "y" ? attention_.Attend(projected_, layout_)
                         : attention_.Weights(projected_, layout_);
    }
    return rows.narrow(0, begin, end - begin);
  }

 private:
  const Attention& attention_;
  TensorBatch batch_;
  PlacedLayout layout_;
  Attention::Projected projected_;
  at::Tensor y_;
  at::Tensor weights_;
};

std::unique_ptr<Pass> AttentionNetwork::Begin(TensorBatch batch) const {
  return std::make_unique<AttentionPass>(attention_, std::move(batch));
}

}  // namespace

std::unique_ptr<Network> MakeAttention(Params& params) {
  const auto options = AttentionOptions::From(params);
  return std::make_unique<AttentionNetwork>(options, params.Call().Flag("need_weights", true));
}

}  // namespace linserve::linear_multihead_attention
