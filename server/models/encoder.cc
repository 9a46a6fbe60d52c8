#include "models/encoder.h"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "attention/aten.h"
#include "attention/positions.h"
#include "models/encoder_modules.h"

namespace linserve {
namespace {

constexpr double kBase = 10000;

class EncoderNetwork : public Network {
 public:
  explicit EncoderNetwork(const EncoderOptions& options) : options_(options), norm_(options.dim) {
    for (int64_t i = 0; i < options.depth; ++i) layers_.emplace_back(options);
  }

  void Declare(const Scope& scope) override {
    if (options_.num_tokens) {
      (scope / "token_emb")
          .Declare("weight", token_emb_, {*options_.num_tokens, options_.dim}, Init::kNormal);
    }
    if (options_.positions == EncoderPositions::kLearned) {
      (scope / "pos_emb")
          .Declare("weight", pos_emb_, {*options_.max_seq_len, options_.dim}, Init::kNormal);
    }
    int64_t index = 0;
    for (EncoderLayer& layer : layers_) layer.Declare(scope / "layers" / index++);
    norm_.Declare(scope / "norm");
  }

  Signature signature() const override {
    const Axis length = Axis::Ragged('n');
    const Axis width = Axis::Fixed(options_.dim);
    InputSpec x{.name = "x", .axes = {length, width}};
    if (options_.num_tokens) {
      x = {.name = "x",
           .kind = InputKind::kToken,
           .axes = {length},
           .vocabulary = *options_.num_tokens};
    }
    Signature signature;
    signature.inputs = {
        std::move(x),
        {.name = "input_mask", .kind = InputKind::kMask, .axes = {length}, .optional = true}};
    signature.outputs = {{.name = "y", .axes = {length, width}}};
    if (options_.linformer()) signature.limits.push_back({'n', options_.seq_len, ""});
    if (options_.max_seq_len) signature.limits.push_back({'n', *options_.max_seq_len, ""});
    return signature;
  }

  double Flops(int64_t length) const override {
    return static_cast<double>(options_.depth) * layers_.front().Flops(length);
  }

  NetworkNotes Notes() const override {
    const bool quadratic = options_.method == AttentionMethod::kSoftmax;
    NetworkNotes notes;
    notes.facts = {
        {"cost of attention", quadratic ? "quadratic in the length" : "linear in the length"}};
    if (options_.linformer() && options_.causal) {
      notes.warnings.emplace_back(
          "causal with attention \"linformer\" hides slots, each of which mixes all positions: "
          "earlier "
          "rows still depend on later ones");
    }
    return notes;
  }

  std::unique_ptr<Pass> Begin(TensorBatch batch) const override;

 private:
  class EncoderPass;

  // The rows that the first layer reads: a tensor of its own.
  at::Tensor Embed(const at::Tensor& x, const AxisLayout& layout, int64_t longest) const {
    at::Tensor rows = options_.num_tokens ? at::embedding(token_emb_, x) : x.clone();
    if (options_.positions == EncoderPositions::kLearned) AddPositions(rows, layout, pos_emb_);
    if (options_.positions == EncoderPositions::kSinusoidal) {
      AddPositions(rows, layout, Sinusoid(longest, options_.dim, kBase));
    }
    return rows;
  }

  EncoderOptions options_;
  at::Tensor token_emb_;
  at::Tensor pos_emb_;
  std::deque<EncoderLayer> layers_;
  LayerNorm norm_;
};

class EncoderNetwork::EncoderPass : public Pass {
 public:
  EncoderPass(const EncoderNetwork& network, at::Tensor rows, EncoderContext context)
      : network_(network), rows_(std::move(rows)), context_(std::move(context)) {}

  bool Step() override {
    network_.layers_[layer_++].Apply(rows_, context_);
    return layer_ < network_.layers_.size();
  }

  at::Tensor Output(const std::string&, int64_t begin, int64_t end) override {
    return network_.norm_(rows_.narrow(0, begin, end - begin));
  }

 private:
  const EncoderNetwork& network_;
  at::Tensor rows_;
  EncoderContext context_;
  size_t layer_ = 0;
};

std::unique_ptr<Pass> EncoderNetwork::Begin(TensorBatch batch) const {
  EncoderContext context;
  context.layout = ComputedLayout(batch.axes.at('n'), batch.padding);
  const int64_t longest =
      *std::max_element(context.layout.lengths.begin(), context.layout.lengths.end());
  context.mask = batch.Find("input_mask");
  if (options_.positions == EncoderPositions::kRotary) {
    context.rotation = Sinusoid(longest, options_.dim_head, kBase);
  }
  at::Tensor rows = Embed(batch["x"], context.layout, longest);
  return std::make_unique<EncoderPass>(*this, std::move(rows), std::move(context));
}

}  // namespace

std::unique_ptr<Network> MakeEncoder(Params& params) {
  return std::make_unique<EncoderNetwork>(EncoderOptions::From(params));
}

}  // namespace linserve
