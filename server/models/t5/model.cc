#include "models/t5/model.h"

#include <deque>
#include <iterator>
#include <string>
#include <utility>

#include "attention/device/device_plugin.h"
#include "attention/rows/aten.h"
#include "models/network/layer_pass.h"
#include "models/t5/layer.h"
#include "models/t5/rows_in_f16.h"
#include "models/tokens/token_embedding.h"

namespace linserve::t5 {
namespace {

class T5Network : public Network {
 public:
  explicit T5Network(const Options& options)
      : options_(options), norm_(LayerNorm::OfMeanSquare(options.dim, options.eps)) {
    for (int64_t i = 0; i < options.depth; ++i) layers_.emplace_back(options, i);
  }

  void Declare(const Scope& scope) override {
    const Scope encoder = scope / "encoder";
    for (const Scope& words : {scope / "shared", encoder / "embed_tokens"}) {
      words_.Declare(words, options_.vocabulary, options_.dim);
    }
    int64_t index = 0;
    for (Layer& layer : layers_) layer.Declare(encoder / "block" / index++);
    norm_.Declare(encoder / "final_layer_norm");
    scope.AfterLoading([this](DType) { ShrinkInF16({&words_.weight()}, {&norm_}); });
  }

  Signature signature() const override {
    Signature signature = SignatureOfEncoder(options_.vocabulary, options_.dim);
    signature.limits = {{'n', options_.longest, ""}};
    return signature;
  }

  // Rows of a sequence meet in the device's kernel alone.
  bool Recordable() const override { return AttendsOnDevices(options_.dim_head, /*differs=*/true); }

  int64_t Layers() const override { return std::ssize(layers_); }

  bool LeavesOutFullMask(const std::string& /*input*/) const override { return true; }

  double Flops(int64_t length) const override {
    double flops = 0;
    for (const Layer& layer : layers_) flops += layer.Flops(length);
    return flops;
  }

  NetworkNotes Notes() const override {
    return {.facts = {{"cost of attention", "quadratic in the length"}}, .warnings = {}};
  }

  std::unique_ptr<Pass> Begin(TensorBatch batch) const override;

 private:
  class EncoderPass;

  Context ContextOf(const TensorBatch& batch) const;

  Options options_;
  TokenEmbedding words_;
  std::deque<Layer> layers_;
  LayerNorm norm_;
};

class T5Network::EncoderPass : public LayerPass<Layer, Context> {
 public:
  EncoderPass(const T5Network& network, at::Tensor rows, Context context)
      : LayerPass(network.layers_, std::move(rows), std::move(context)), network_(network) {}

  at::Tensor Output(const std::string& /*name*/, int64_t begin, int64_t end) override {
    return network_.norm_(Rows(begin, end));
  }

 private:
  const T5Network& network_;
};

Context T5Network::ContextOf(const TensorBatch& batch) const {
  Context context{.layout = ComputedLayout(batch.axes.at('n'), batch.padding),
                  .mask = batch.Find("attention_mask")};
  context.key_scores = BlockAttention::ScoresOfKeys(context.mask);
  const int64_t longest = context.layout.most_rows();
  for (const Layer& layer : layers_) {
    at::Tensor distances = layer.attention().Distances(longest);
    if (distances.defined()) context.distances.push_back(std::move(distances));
  }
  return context;
}

std::unique_ptr<Pass> T5Network::Begin(TensorBatch batch) const {
  return std::make_unique<EncoderPass>(*this, words_(batch["x"]), ContextOf(batch));
}

}  // namespace

std::unique_ptr<Network> MakeEncoder(Family family, Params& params) {
  return std::make_unique<T5Network>(Options::From(family, params));
}

}  // namespace linserve::t5
