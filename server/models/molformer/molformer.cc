#include "models/molformer/molformer.h"

#include <array>
#include <deque>
#include <string>
#include <utility>

#include "attention/positions/positions.h"
#include "attention/rows/aten.h"
#include "engine/model.h"
#include "models/config/activation_param.h"
#include "models/config/class_labels.h"
#include "models/fast_transformers/feature_map.h"
#include "models/fast_transformers/layer.h"
#include "models/network/layer_pass.h"
#include "models/sentences/head_network.h"
#include "models/sentences/pooled_sequences.h"
#include "models/tokens/token_embedding.h"

namespace linserve::molformer {
namespace {

using fast_transformers::AttentionOptions;
using fast_transformers::Context;
using fast_transformers::Layer;
using fast_transformers::LayerNames;
using fast_transformers::LayerOptions;

constexpr double kRotaryBase = 10000;

// Training, the heads of other tasks, and what extends tables read these alone. The pooling layer
// is a mean, which costs nothing where nobody asks for it.
constexpr std::array kWithoutEffect = {"hidden_dropout_prob",        "embedding_dropout_prob",
                                       "initializer_range",          "classifier_dropout_prob",
                                       "classifier_skip_connection", "pad_token_id",
                                       "max_position_embeddings",    "tie_word_embeddings",
                                       "chunk_size_feed_forward",    "add_pooling_layer"};
constexpr const char* kPooled = "pooler_output";

struct Options {
  int64_t vocabulary = 0;
  int64_t layers = 0;
  LayerOptions layer{};

  static Options From(Params& params);
};

Options Options::From(Params& params) {
  Options options;
  AttentionOptions& attention = options.layer.self;
  options.vocabulary = params.Positive("vocab_size", 2362);
  options.layers = params.Depth("num_hidden_layers", 12);
  attention.dim = params.Positive("hidden_size", 768);
  attention.heads = params.Heads("num_attention_heads", 12);
  if (attention.dim % (2 * attention.heads) != 0) {
    params.Fail("hidden_size",
                "a multiple of 2 · num_attention_heads = " + std::to_string(2 * attention.heads) +
                    ", since rotary positions turn the halves of each head");
  }
  attention.source_dim = attention.dim;
  attention.width = attention.value_width = attention.dim / attention.heads;
  attention.linear = true;
  attention.rotary = true;
  attention.floor = params.Number("linear_attention_eps", 1e-6, 1e-30, 1);
  attention.features.directions = params.Positive("num_random_features", 32);
  attention.features.random =
      RandomFeatures{.map = RandomFeatures::Map::kKernel,
                     .kernel = ActivationParam(params, "feature_map_kernel", "relu")};
  attention.features.redraws = !params.Flag("deterministic_eval", false);
  options.layer.inner = params.Positive("intermediate_size", 768);
  options.layer.activation = ActivationParam(params, "hidden_act");
  options.layer.eps = params.Number("layer_norm_eps", 1e-12, 0, 1);
  for (const char* key : {"is_decoder", "add_cross_attention"}) {
    if (params.Flag(key, false)) params.Fail(key, "false: only encoders are computed");
  }
  for (const char* key : kWithoutEffect) params.Ignore(key);
  return options;
}

LayerNames Names() {
  return {.self = {.query = "attention.self.query",
                   .key = "attention.self.key",
                   .value = "attention.self.value",
                   .out = "attention.output.dense",
                   .directions = "attention.self.feature_map.weight"},
          .cross = {},
          .self_norm = "attention.output.LayerNorm",
          .cross_norm = "",
          .inner = "intermediate.dense",
          .outer = "output.dense",
          .norm = "output.LayerNorm"};
}

class ModelNetwork : public Network {
 public:
  explicit ModelNetwork(const Options& options)
      : options_(options), norm_(options.layer.dim(), options.layer.eps) {
    for (int64_t i = 0; i < options.layers; ++i) layers_.emplace_back(options.layer);
  }

  void Declare(const Scope& scope) override {
    // Attention by few features makes much of the digits that would be lost, and the words are few.
    words_.KeepAsLoaded();
    words_.Declare(scope / "embeddings" / "word_embeddings", options_.vocabulary,
                   options_.layer.dim());
    const LayerNames names = Names();
    int64_t index = 0;
    for (Layer& layer : layers_) layer.Declare(scope / "encoder" / "layer" / index++, names);
    norm_.Declare(scope / "LayerNorm");
  }

  Signature signature() const override {
    const int64_t width = options_.layer.dim();
    Signature signature = SignatureOfEncoder(options_.vocabulary, width);
    signature.outputs.push_back({.name = kPooled, .axes = {Axis::Fixed(width)}});
    return signature;
  }

  int64_t Layers() const override { return options_.layers; }

  double Flops(int64_t length) const override {
    return static_cast<double>(options_.layers) * layers_.front().Flops(length, 0);
  }

  NetworkNotes Notes() const override {
    NetworkNotes notes;
    notes.facts = {{"cost of attention", "linear in the length"}};
    if (options_.layer.self.features.redraws) {
      notes.warnings.emplace_back(fast_transformers::kRedrawn);
    }
    return notes;
  }

  std::unique_ptr<Pass> Begin(TensorBatch batch) const override;

 private:
  class ModelPass;

  Options options_;
  TokenEmbedding words_;
  std::deque<Layer> layers_;
  LayerNorm norm_;
};

class ModelNetwork::ModelPass : public LayerPass<Layer, Context> {
 public:
  ModelPass(const ModelNetwork& network, at::Tensor rows, Context context)
      : LayerPass(network.layers_, std::move(rows), std::move(context)), network_(network) {}

  at::Tensor Output(const std::string& name, int64_t begin, int64_t end) override {
    if (name == kPooled) return Pooled(begin, end);
    return network_.norm_(Rows(begin, end));
  }

 private:
  // Returns the means of the sequences' visible rows.
  at::Tensor Pooled(int64_t begin, int64_t end) const {
    const auto normed = [this](int64_t first, int64_t last) {
      return network_.norm_(Rows(first, last));
    };
    return PoolSequences(normed, context().layout, context().mask, begin, end, Pooling::kMean)
        .to(rows().scalar_type());
  }

  const ModelNetwork& network_;
};

std::unique_ptr<Pass> ModelNetwork::Begin(TensorBatch batch) const {
  Context context{.layout = ComputedLayout(batch.axes.at('n'), batch.padding),
                  .mask = batch.Find("attention_mask")};
  const at::Tensor places = at::arange(context.layout.longest(), words_.options().dtype(at::kLong));
  context.rotation = Sinusoid(places, options_.layer.self.width, kRotaryBase);
  at::Tensor rows = words_(batch["x"]);
  return std::make_unique<ModelPass>(*this, std::move(rows), std::move(context));
}

// Reads the layers that make scores of the mean of the visible rows.
Head ClassifierHead(const Options& options, Params& params) {
  Head head{.output = kLogits,
            .encoder = "molformer",
            .input = kPooled,
            .layers = {},
            .labels = ClassLabelsParam(params)};
  const bool skip = params.Flag("classifier_skip_connection", true);
  for (const char* path : {"classifier.dense", "classifier.dense2"}) {
    head.layers.push_back({.path = path,
                           .outputs = options.layer.dim(),
                           .activation = options.layer.activation,
                           .skip = skip});
  }
  head.layers.push_back({.path = "classifier.out_proj", .outputs = std::ssize(head.labels.names)});
  return head;
}

}  // namespace

std::unique_ptr<Network> MakeModel(Params& params) {
  return std::make_unique<ModelNetwork>(Options::From(params));
}

std::unique_ptr<Network> MakeClassifier(Params& params) {
  const Options options = Options::From(params);
  return std::make_unique<HeadNetwork>(std::make_unique<ModelNetwork>(options),
                                       ClassifierHead(options, params));
}

}  // namespace linserve::molformer
