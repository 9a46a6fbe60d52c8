#include "models/linear_multihead_attention/linear_detr.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <utility>

#include "attention/rows/aten.h"
#include "attention/rows/spans.h"
#include "models/linear_multihead_attention/linear_detr_layers.h"

namespace linserve::linear_multihead_attention {
namespace {

Axis Source() { return Axis::Ragged('n'); }
Axis Queries() { return Axis::Ragged('q'); }

// Adds the limits of the letters n and, of a decoder, q.
void AddLimits(const DetrOptions& options, bool decodes, Signature& signature) {
  signature.limits.push_back(options.AttentionTo(options.seq_len).Limit('n'));
  if (decodes) signature.limits.push_back(options.AttentionTo(options.num_queries).Limit('q'));
  signature.request_is_unit = options.projection.package_layout;
}

NetworkNotes NotesOf(const DetrOptions& options) {
  NetworkNotes notes;
  options.AddTo(notes);
  return notes;
}

// Passes through one layer, which is one step, and so only a function.
class LayerPass : public Pass {
 public:
  explicit LayerPass(std::function<at::Tensor()> compute) : compute_(std::move(compute)) {}

  bool Step() override {
    result_ = compute_();
    return false;
  }

  at::Tensor Output(const std::string&, int64_t begin, int64_t end) override {
    return result_.narrow(0, begin, end - begin);
  }

 private:
  std::function<at::Tensor()> compute_;
  at::Tensor result_;
};

InputSpec Rows(const char* name, const std::vector<Axis>& rows, bool optional) {
  return {.name = name, .axes = rows, .optional = optional};
}

InputSpec Mask(const char* name, Axis length) {
  return {
      .name = name, .kind = InputKind::kMask, .axes = {length}, .optional = true, .hides = true};
}

// Is the architecture linear_detr.TransformerEncoderLayer.
class EncoderLayerNetwork : public Network {
 public:
  explicit EncoderLayerNetwork(const DetrOptions& options) : options_(options), layer_(options) {}

  void Declare(const Scope& scope) override { layer_.Declare(scope); }

  Signature signature() const override {
    const std::vector<Axis> rows = {Source(), Axis::Fixed(options_.d_model)};
    Signature signature;
    signature.inputs = {Rows("src", rows, /*optional=*/false),
                        Mask("src_key_padding_mask", Source()),
                        Rows("pos", rows, /*optional=*/true)};
    signature.outputs = {{.name = "y", .axes = rows, .mask = "src_key_padding_mask"}};
    AddLimits(options_, /*decodes=*/false, signature);
    return signature;
  }

  double Flops(int64_t length) const override { return layer_.Flops(length); }
  NetworkNotes Notes() const override { return NotesOf(options_); }

  SessionPlan Sessions() const override { return SessionPlan::RefusedByProjections(); }

  std::unique_ptr<Pass> Begin(TensorBatch batch) const override {
    return std::make_unique<LayerPass>([this, batch = std::move(batch)] {
      const PlacedLayout layout = ComputedLayout(batch.axes.at('n'), batch.padding);
      at::Tensor rows = batch["src"].clone();
      layer_.Apply(rows, {layout, batch.Find("pos"), batch.Find("src_key_padding_mask")});
      return rows;
    });
  }

 private:
  DetrOptions options_;
  DetrEncoderLayer layer_;
};

// Is the architecture linear_detr.TransformerDecoderLayer.
class DecoderLayerNetwork : public Network {
 public:
  explicit DecoderLayerNetwork(const DetrOptions& options) : options_(options), layer_(options) {}

  void Declare(const Scope& scope) override { layer_.Declare(scope); }

  Signature signature() const override {
    const std::vector<Axis> rows = {Source(), Axis::Fixed(options_.d_model)};
    const std::vector<Axis> queries = {Queries(), Axis::Fixed(options_.d_model)};
    Signature signature;
    signature.inputs = {
        Rows("tgt", queries, /*optional=*/false), Rows("memory", rows, /*optional=*/false),
        Mask("tgt_key_padding_mask", Queries()),  Mask("memory_key_padding_mask", Source()),
        Rows("pos", rows, /*optional=*/true),     Rows("query_pos", queries, /*optional=*/true)};
    signature.outputs = {{.name = "y", .axes = queries, .mask = "tgt_key_padding_mask"}};
    AddLimits(options_, /*decodes=*/true, signature);
    return signature;
  }

  double Flops(int64_t length) const override {
    return layer_.Flops(std::min(length, options_.num_queries), length);
  }
  NetworkNotes Notes() const override { return NotesOf(options_); }

  SessionPlan Sessions() const override { return SessionPlan::RefusedByProjections(); }

  std::unique_ptr<Pass> Begin(TensorBatch batch) const override {
    return std::make_unique<LayerPass>([this, batch = std::move(batch)] {
      const PlacedLayout queries = ComputedLayout(batch.axes.at('q'), batch.padding);
      const PlacedLayout source = ComputedLayout(batch.axes.at('n'), batch.padding);
      at::Tensor rows = batch["tgt"].clone();
      layer_.Apply(rows, {queries, batch.Find("query_pos"), batch.Find("tgt_key_padding_mask")},
                   batch["memory"],
                   {source, batch.Find("pos"), batch.Find("memory_key_padding_mask")});
      return rows;
    });
  }

 private:
  DetrOptions options_;
  DetrDecoderLayer layer_;
};

// Holds the arguments of linear_detr.Transformer.
struct TransformerOptions {
  DetrOptions layer;
  int64_t encoder_layers;
  int64_t decoder_layers;
  bool return_intermediate;

  static TransformerOptions From(Params& params) {
    DetrOptions layer = DetrOptions::From(params);
    layer.ReadNumQueries(params);
    return {layer, params.Depth("num_encoder_layers", 6), params.Depth("num_decoder_layers", 6),
            params.Flag("return_intermediate_dec", false)};
  }
};

// Is the architecture linear_detr.Transformer.
class TransformerNetwork : public Network {
 public:
  explicit TransformerNetwork(const TransformerOptions& options)
      : options_(options),
        encoder_(static_cast<size_t>(options.encoder_layers), DetrEncoderLayer(options.layer)),
        decoder_(static_cast<size_t>(options.decoder_layers), DetrDecoderLayer(options.layer)),
        encoder_norm_(options.layer.d_model),
        decoder_norm_(options.layer.d_model) {}

  void Declare(const Scope& scope) override;
  Signature signature() const override;
  int64_t Layers() const override { return std::ssize(encoder_) + std::ssize(decoder_); }
  double Flops(int64_t length) const override;
  NetworkNotes Notes() const override { return NotesOf(options_.layer); }
  SessionPlan Sessions() const override { return SessionPlan::RefusedByProjections(); }

  std::unique_ptr<Pass> Begin(TensorBatch batch) const override;

 private:
  class TransformerPass;

  TransformerOptions options_;
  std::deque<DetrEncoderLayer> encoder_;
  std::deque<DetrDecoderLayer> decoder_;
  LayerNorm encoder_norm_;  // only with normalize_before
  LayerNorm decoder_norm_;
};

void TransformerNetwork::Declare(const Scope& scope) {
  const auto declare = [](auto& layers, const Scope& stack) {
    for (size_t i = 0; i < layers.size(); ++i) {
      layers[i].Declare(stack / "layers" / static_cast<int64_t>(i));
    }
  };
  declare(encoder_, scope / "encoder");
  if (options_.layer.normalize_before) encoder_norm_.Declare(scope / "encoder" / "norm");
  declare(decoder_, scope / "decoder");
  decoder_norm_.Declare(scope / "decoder" / "norm");
}

Signature TransformerNetwork::signature() const {
  const Axis width = Axis::Fixed(options_.layer.d_model);
  const std::vector<Axis> rows = {Source(), width};
  Signature signature;
  signature.inputs = {{.name = "src", .axes = rows},
                      Mask("mask", Source()),
                      {.name = "query_embed", .axes = {Queries(), width}},
                      {.name = "pos_embed", .axes = rows}};
  OutputSpec hs = {.name = "hs", .axes = {Queries(), width}};
  if (options_.return_intermediate) {
    hs.axes.insert(hs.axes.begin(), Axis::Fixed(options_.decoder_layers));
  }
  signature.outputs = {hs, {.name = "memory", .axes = rows, .mask = "mask"}};
  AddLimits(options_.layer, /*decodes=*/true, signature);
  return signature;
}

double TransformerNetwork::Flops(int64_t length) const {
  const int64_t queries = std::min(length, options_.layer.num_queries);
  double flops = 0;
  for (const DetrEncoderLayer& layer : encoder_) flops += layer.Flops(length);
  for (const DetrDecoderLayer& layer : decoder_) flops += layer.Flops(queries, length);
  return flops;
}

class TransformerNetwork::TransformerPass : public Pass {
 public:
  TransformerPass(const TransformerNetwork& network, const TensorBatch& batch)
      : network_(network),
        source_layout_(ComputedLayout(batch.axes.at('n'), batch.padding)),
        query_layout_(ComputedLayout(batch.axes.at('q'), batch.padding)),
        source_{source_layout_, batch["pos_embed"], batch.Find("mask")},
        queries_{query_layout_, batch["query_embed"]},
        memory_(batch["src"].clone()),
        tgt_(at::zeros_like(batch["query_embed"])) {}

  bool Step() override {
    const size_t encoders = network_.encoder_.size();
    if (step_ < encoders) {
      network_.encoder_[step_].Apply(memory_, source_);
      const bool last = step_ + 1 == encoders;
      if (last && network_.options_.layer.normalize_before)
        memory_ = network_.encoder_norm_(memory_);
    } else {
      network_.decoder_[step_ - encoders].Apply(tgt_, queries_, memory_, source_);
      const bool last = step_ + 1 == encoders + network_.decoder_.size();
      if (last || network_.options_.return_intermediate) {
        hs_.push_back(network_.decoder_norm_(tgt_));
      }
    }
    return ++step_ < encoders + network_.decoder_.size();
  }

  at::Tensor Output(const std::string& name, int64_t begin, int64_t end) override {
    if (name == "memory") return memory_.narrow(0, begin, end - begin);
    if (!network_.options_.return_intermediate) return hs_.back().narrow(0, begin, end - begin);
    std::vector<at::Tensor> layers;
    for (const at::Tensor& rows : hs_) layers.push_back(rows.narrow(0, begin, end - begin));
    return at::stack(layers);
  }

 private:
  const TransformerNetwork& network_;
  PlacedLayout source_layout_, query_layout_;
  DetrRows source_, queries_;
  at::Tensor memory_;
  at::Tensor tgt_;
  std::vector<at::Tensor> hs_;  // through decoder.norm: of every layer, or of the last one
  size_t step_ = 0;
};

std::unique_ptr<Pass> TransformerNetwork::Begin(TensorBatch batch) const {
  return std::make_unique<TransformerPass>(*this, batch);
}

}  // namespace

std::unique_ptr<Network> MakeDetrTransformer(Params& params) {
  return std::make_unique<TransformerNetwork>(TransformerOptions::From(params));
}

std::unique_ptr<Network> MakeDetrEncoderLayer(Params& params) {
  return std::make_unique<EncoderLayerNetwork>(DetrOptions::From(params));
}

std::unique_ptr<Network> MakeDetrDecoderLayer(Params& params) {
  DetrOptions options = DetrOptions::From(params);
  options.ReadNumQueries(params);
  return std::make_unique<DecoderLayerNetwork>(options);
}

}  // namespace linserve::linear_multihead_attention
