#include "models/fast_transformers/transformer.h"

#include <deque>
#include <utility>

#include "attention/rows/aten.h"
#include "attention/rows/spans.h"
#include "models/fast_transformers/layer.h"
#include "models/fast_transformers/options.h"
#include "models/network/layer_pass.h"

namespace linserve::fast_transformers {
namespace {

AttentionNames NamesOf(const std::string& attention) {
  return {.query = attention + ".query_projection",
          .key = attention + ".key_projection",
          .value = attention + ".value_projection",
          .out = attention + ".out_projection",
          .directions = attention + ".inner_attention.feature_map.omega"};
}

LayerNames EncoderNames() {
  return {.self = NamesOf("attention"),
          .cross = {},
          .self_norm = "norm1",
          .cross_norm = "",
          .inner = "linear1",
          .outer = "linear2",
          .norm = "norm2"};
}

LayerNames DecoderNames() {
  return {.self = NamesOf("self_attention"),
          .cross = NamesOf("cross_attention"),
          .self_norm = "norm1",
          .cross_norm = "norm2",
          .inner = "linear1",
          .outer = "linear2",
          .norm = "norm3"};
}

// Is TransformerEncoder or, with attention to a memory, TransformerDecoder.
class TransformerNetwork : public Network {
 public:
  explicit TransformerNetwork(const Options& options)
      : options_(options), norm_(options.layer.dim()) {
    for (int64_t i = 0; i < options.layers; ++i) layers_.emplace_back(options.layer);
  }

  void Declare(const Scope& scope) override {
    const LayerNames names = decodes() ? DecoderNames() : EncoderNames();
    int64_t index = 0;
    for (Layer& layer : layers_) layer.Declare(scope / "layers" / index++, names);
    if (options_.final_norm) norm_.Declare(scope / "norm");
  }

  Signature signature() const override {
    const std::vector<Axis> rows = {Axis::Ragged('n'), Axis::Fixed(options_.layer.dim())};
    Signature signature;
    signature.inputs = {
        {.name = "x", .axes = rows},
        {.name = mask_name(), .kind = InputKind::kMask, .axes = {rows[0]}, .optional = true}};
    if (decodes()) {
      const Axis length = Axis::Ragged('m');
      signature.inputs.push_back({.name = "memory",
                                  .axes = {length, Axis::Fixed(options_.layer.cross->source_dim)},
                                  .opens = true});
      signature.inputs.push_back({.name = "memory_length_mask",
                                  .kind = InputKind::kMask,
                                  .axes = {length},
                                  .optional = true,
                                  .opens = true});
    }
    signature.outputs = {{.name = "y", .axes = rows, .mask = mask_name()}};
    return signature;
  }

  int64_t Layers() const override { return options_.layers; }

  double Flops(int64_t length) const override {
    return static_cast<double>(options_.layers) * layers_.front().Flops(length, length);
  }

  NetworkNotes Notes() const override {
    const LayerOptions& layer = options_.layer;
    const auto quadratic = [](const AttentionOptions& attention) {
      return !attention.linear && attention.before < 0;
    };
    const bool any = quadratic(layer.self) || (layer.cross && quadratic(*layer.cross));
    NetworkNotes notes;
    notes.facts = {{"cost of attention", any ? "quadratic in the length" : "linear in the length"}};
    const bool linear = layer.self.linear || (layer.cross && layer.cross->linear);
    if (linear && layer.self.features.redraws) notes.warnings.emplace_back(kRedrawn);
    return notes;
  }

  SessionPlan Sessions() const override {
    SessionPlan plan{{}, options_.SessionRefusal()};
    if (!plan.refusal.empty()) return plan;
    for (const Layer& layer : layers_) {
      for (StateSlot& slot : layer.State()) plan.slots.push_back(std::move(slot));
    }
    return plan;
  }

  std::unique_ptr<Pass> Begin(TensorBatch batch) const override;

 private:
  class TransformerPass;

  bool decodes() const { return options_.layer.cross.has_value(); }
  const char* mask_name() const { return decodes() ? "x_length_mask" : "length_mask"; }

  Options options_;
  std::deque<Layer> layers_;
  LayerNorm norm_;
};

class TransformerNetwork::TransformerPass : public LayerPass<Layer, Context> {
 public:
  TransformerPass(const TransformerNetwork& network, at::Tensor rows, Context context)
      : LayerPass(network.layers_, std::move(rows), std::move(context)), network_(network) {}

  at::Tensor Output(const std::string&, int64_t begin, int64_t end) override {
    const at::Tensor rows = Rows(begin, end);
    return network_.options_.final_norm ? network_.norm_(rows) : rows;
  }

 private:
  const TransformerNetwork& network_;
};

std::unique_ptr<Pass> TransformerNetwork::Begin(TensorBatch batch) const {
  Context context{.layout = ComputedLayout(batch.axes.at('n'), batch.padding),
                  .mask = batch.Find(mask_name()),
                  .session = batch.memory};
  // Only the first chunk of a session brings the memory.
  if (batch.Has("memory")) {
    context.memory = Source::Of(batch["memory"], ComputedLayout(batch.axes.at('m'), batch.padding),
                                batch.Find("memory_length_mask"));
  }
  return std::make_unique<TransformerPass>(*this, batch["x"].clone(), std::move(context));
}

}  // namespace

std::unique_ptr<Network> MakeEncoder(Params& params) {
  return std::make_unique<TransformerNetwork>(Options::Encoder(params));
}

std::unique_ptr<Network> MakeDecoder(Params& params) {
  return std::make_unique<TransformerNetwork>(Options::Decoder(params));
}

}  // namespace linserve::fast_transformers
