#include "models/llama/model.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "attention/device/device_plugin.h"
#include "attention/positions/positions.h"
#include "attention/rows/aten.h"
#include "attention/rows/spans.h"
#include "models/llama/layer.h"
#include "models/network/layer_pass.h"
#include "models/tokens/token_embedding.h"

namespace linserve::llama {
namespace {

class LlamaNetwork : public Network {
 public:
  explicit LlamaNetwork(Options options)
      : options_(std::move(options)),
        norm_(LayerNorm::OfMeanSquare(options_.dim, options_.eps, options_.norms_from_one)) {
    for (const LayerKind& kind : options_.layers) layers_.emplace_back(options_, kind);
  }

  void Declare(const Scope& scope) override {
    words_.Declare(scope / "embed_tokens", options_.vocabulary, options_.dim);
    int64_t index = 0;
    for (Layer& layer : layers_) layer.Declare(scope / "layers" / index++);
    norm_.Declare(scope / options_.names.last_norm);
    scope.AfterLoading([this](DType) {
      for (const RotaryFrequencies& rotary : options_.rotary) {
        // What is not turned has a frequency of 0.
        const int64_t turned = options_.turned();
        const at::Tensor all = at::constant_pad_nd(FrequenciesOf(rotary, turned),
                                                   {0, (options_.dim_head - turned) / 2});
        frequencies_.push_back(all.to(words_.options().device()));
      }
    });
  }

  Signature signature() const override {
    Signature signature = SignatureOfEncoder(options_.vocabulary, options_.dim);
    signature.limits = {{'n', options_.longest, ""}};
    return signature;
  }

  int64_t Layers() const override { return std::ssize(layers_); }

  // Rows of a sequence meet in the device's kernel alone.
  bool Recordable() const override {
    return options_.score_cap == 0 &&
           AttendsOnDevices(options_.dim_head, options_.causal() || options_.has_windows());
  }

  bool LeavesOutFullMask(const std::string& /*input*/) const override { return true; }

  double Flops(int64_t length) const override {
    double flops = 0;
    for (const Layer& layer : layers_) flops += layer.Flops(length);
    return flops;
  }

  NetworkNotes Notes() const override {
    NetworkNotes notes;
    notes.facts = {{"attention", options_.causal() ? "causal: a row depends on earlier rows alone"
                                                   : "bidirectional"},
                   {"cost of attention", "quadratic in the length"}};
    const auto convolve = std::count_if(options_.layers.begin(), options_.layers.end(),
                                        [](const LayerKind& kind) { return kind.convolves; });
    if (convolve > 0) {
      notes.facts.emplace_back("without attention", std::to_string(convolve) + " of " +
                                                        std::to_string(Layers()) +
                                                        " layers, whose cost is linear in it");
    }
    return notes;
  }

  std::unique_ptr<Pass> Begin(TensorBatch batch) const override;

 private:
  class ModelPass;

  Context ContextOf(const TensorBatch& batch) const;

  Options options_;
  TokenEmbedding words_;
  std::deque<Layer> layers_;
  LayerNorm norm_;
  std::vector<at::Tensor> frequencies_;  // of each of Options::rotary
};

class LlamaNetwork::ModelPass : public LayerPass<Layer, Context> {
 public:
  ModelPass(const LlamaNetwork& network, at::Tensor rows, Context context)
      : LayerPass(network.layers_, std::move(rows), std::move(context)), network_(network) {}

  at::Tensor Output(const std::string& /*name*/, int64_t begin, int64_t end) override {
    return network_.norm_(Rows(begin, end));
  }

 private:
  const LlamaNetwork& network_;
};

Context LlamaNetwork::ContextOf(const TensorBatch& batch) const {
  Context context{.layout = ComputedLayout(batch.axes.at('n'), batch.padding),
                  .mask = batch.Find("attention_mask")};
  const at::TensorOptions floats = words_.options().dtype(at::kFloat);
  context.key_scores = BlockAttention::ScoresOfKeys(context.mask);
  for (size_t i = 0; i < frequencies_.size(); ++i) {
    const at::Tensor table =
        Sinusoid(at::arange(context.layout.most_rows(), floats), frequencies_[i]);
    table.unflatten(1, {2, -1})
        .narrow(2, 0, options_.turned() / 2)
        .mul_(options_.rotary[i].amplitude);
    context.rotations.push_back(table);
  }
  return context;
}

std::unique_ptr<Pass> LlamaNetwork::Begin(TensorBatch batch) const {
  at::Tensor rows = words_(batch["x"]);
  if (options_.scales_words) {
    // The package rounds the root to the type of the rows.
    rows.mul_(at::scalar_tensor(std::sqrt(static_cast<double>(options_.dim)), rows.options()));
  }
  if (options_.words_factor != 1) rows.mul_(options_.words_factor);
  return std::make_unique<ModelPass>(*this, std::move(rows), ContextOf(batch));
}

}  // namespace

std::unique_ptr<Network> MakeModel(Family family, Params& params) {
  return std::make_unique<LlamaNetwork>(Options::From(family, params));
}

}  // namespace linserve::llama
