#include "models/fairseq/linformer_roberta.h"

#include <deque>
#include <string>
#include <utility>

#include "attention/rows/activation.h"
#include "attention/rows/aten.h"
#include "attention/rows/spans.h"
#include "models/fairseq/embeddings.h"
#include "models/fairseq/layer.h"
#include "models/fairseq/options.h"
#include "models/network/layer_pass.h"

namespace linserve::fairseq {
namespace {

// Is RobertaLMHead: logits of all tokens.
class Head {
 public:
  explicit Head(const Options& options)
      : options_(options), dense_(options.dim, options.dim), norm_(options.dim) {}

  // `words` are the embeddings, which are a tied head's weights.
  void Declare(const Scope& head, at::Tensor& words) {
    weight_slot_ = options_.tied ? &words : &weight_;
    head.Declare("weight", *weight_slot_, {options_.vocabulary, options_.dim}, Init::kNormal);
    head.Declare("bias", bias_, {options_.vocabulary}, Init::kZeros);
    dense_.DeclareUnpacked(head / "dense");
    norm_.Declare(head / "layer_norm");
  }

  int64_t Flops() const { return dense_.Flops() + 2 * options_.dim * options_.vocabulary; }

  at::Tensor operator()(const at::Tensor& rows) const {
    at::Tensor inner = dense_(rows);
    Activate(options_.activation, inner);
    return at::linear(norm_(inner), *weight_slot_, bias_);
  }

 private:
  const Options& options_;
  Linear dense_;
  LayerNorm norm_;
  at::Tensor weight_;
  at::Tensor bias_;
  at::Tensor* weight_slot_ = nullptr;
};

class RobertaNetwork : public Network {
 public:
  explicit RobertaNetwork(const Options& options)
      : options_(options), embeddings_(options), norm_(options.dim), head_(options_) {
    if (options.layers_share) {
      shared_ = std::make_shared<LengthMatrix>(options.longest, options.slots,
                                               LengthMatrix::Form::kLinearWithBias);
    }
    for (int64_t i = 0; i < options.depth; ++i) layers_.emplace_back(options, shared_);
  }

  void Declare(const Scope& scope) override {
    DeclareIn(scope / "encoder");
    DeclareIn(scope / "decoder");  // in older checkpoints
    scope.LeavesOut("classification_heads.*");
  }

  Signature signature() const override {
    const Axis length = Axis::Ragged('n');
    const Axis width = Axis::Fixed(options_.dim);
    Signature signature;
    signature.inputs = {{.name = "x",
                         .kind = InputKind::kToken,
                         .axes = {length},
                         .vocabulary = options_.vocabulary}};
    signature.outputs = {
        {.name = "embeddings", .axes = {length, width}},
        {.name = "y",
         .axes = {length, options_.features_only ? width : Axis::Fixed(options_.vocabulary)}}};
    signature.limits = {{'n', options_.longest, ""}};
    return signature;
  }

  int64_t Layers() const override { return options_.depth; }

  double Flops(int64_t length) const override {
    double flops = options_.features_only
                       ? 0
                       : static_cast<double>(head_.Flops()) * static_cast<double>(length);
    for (const Layer& layer : layers_) flops += layer.Flops(length);
    return flops;
  }

  SessionPlan Sessions() const override { return SessionPlan::RefusedByProjections(); }

  std::unique_ptr<Pass> Begin(TensorBatch batch) const override;

 private:
  class RobertaPass;

  void DeclareIn(const Scope& encoder) {
    const Scope sentences = encoder / "sentence_encoder";
    embeddings_.Declare(sentences);
    if (shared_) shared_->Declare(sentences, "compress_layer");
    int64_t index = 0;
    for (Layer& layer : layers_) layer.Declare(sentences / "layers" / index++);
    if (options_.pre_norm) norm_.Declare(sentences / "layer_norm");
    if (options_.features_only) {
      encoder.LeavesOut("lm_head.*");
    } else {
      head_.Declare(encoder / "lm_head", embeddings_.words());
    }
    // These are versions of the checkpoint's form.
    for (const Scope& scope : {encoder, sentences, sentences / "layers" / "*"}) {
      scope.LeavesOut("version");
    }
  }

  Options options_;
  Embeddings embeddings_;
  std::shared_ptr<LengthMatrix> shared_;  // of all layers; null: each has its own
  std::deque<Layer> layers_;
  LayerNorm norm_;
  Head head_;
};

class RobertaNetwork::RobertaPass : public LayerPass<Layer, PlacedLayout> {
 public:
  RobertaPass(const RobertaNetwork& network, at::Tensor rows, PlacedLayout layout)
      : LayerPass(network.layers_, std::move(rows), std::move(layout)), network_(network) {}

  at::Tensor Output(const std::string& name, int64_t begin, int64_t end) override {
    at::Tensor rows = Rows(begin, end);
    if (network_.options_.pre_norm) rows = network_.norm_(rows);
    return name == "y" && !network_.options_.features_only ? network_.head_(rows) : rows;
  }

 private:
  const RobertaNetwork& network_;
};

std::unique_ptr<Pass> RobertaNetwork::Begin(TensorBatch batch) const {
  PlacedLayout layout = ComputedLayout(batch.axes.at('n'), batch.padding);
  at::Tensor rows = embeddings_(batch["x"], layout);
  return std::make_unique<RobertaPass>(*this, std::move(rows), std::move(layout));
}

}  // namespace

std::unique_ptr<Network> MakeLinformerRoberta(Params& params) {
  return std::make_unique<RobertaNetwork>(Options::From(params));
}

}  // namespace linserve::fairseq
