#include "models/transformers/encoder.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "attention/device/device_plugin.h"
#include "attention/positions/distances.h"
#include "attention/positions/positions.h"
#include "attention/rows/aten.h"
#include "models/network/layer_pass.h"
#include "models/transformers/embeddings.h"
#include "models/transformers/full_length_pass.h"
#include "models/transformers/layer.h"
#include "models/transformers/names.h"
#include "models/transformers/rotary_tables.h"

namespace linserve::transformers {
namespace {

// Names the input that says which tokens are global.
constexpr const char* kGlobalMask = "global_attention_mask";

// Is a layer where its turn comes, which may be more than once.
struct Turn {
  const Layer* layer;

  void Apply(at::Tensor& rows, const Context& context) const { layer->Apply(rows, context); }
};

class EncoderNetwork : public Network {
 public:
  explicit EncoderNetwork(Options options)
      : options_(std::move(options)),
        embeddings_(options_),
        rotary_(options_),
        norm_(options_.dim, options_.eps, options_.norm_bias),
        positions_norm_(options_.dim, options_.eps),
        pooler_(options_.dim, options_.dim) {
    for (const LayerKind& kind : options_.layers) {
      layers_.emplace_back(options_, kind, /*first=*/layers_.empty());
    }
    for (const size_t layer : options_.turns) turns_.push_back({&layers_[layer]});
    if (!options_.turns.empty()) return;
    for (const Layer& layer : layers_) turns_.push_back({&layer});
  }

  void Declare(const Scope& scope) override {
    const Names& names = NamesOf(options_.family);
    embeddings_.Declare(scope);
    if (options_.alibi) {
      (scope / "embeddings").AfterLoading([this](DType) {
        slopes_ = AlibiSlopes(options_.heads).to(embeddings_.options().device());
      });
    }
    if (options_.relative.defined()) DeclarePositions(scope / "encoder");
    int64_t index = 0;
    for (Layer& layer : layers_) layer.Declare(ScopeOfLayer(scope, index++), positions_);
    layers_.front().DeclareConvolution(scope / "encoder" / "conv");
    scope.AfterLoading([this](DType) { positions_.reset(); });
    if (names.norm != nullptr) DeclareNorm(scope / names.norm, norm_);
    if (options_.distances) {
      (scope / "encoder" / "relative_attention_bias")
          .Declare("weight", distances_, {32, options_.heads}, Init::kNormal);
    }
    if (options_.pooler) pooler_.Declare(scope / names.pooler);
    // Its classifiers have one that they do without.
    if (options_.family == Family::kBigBird && !options_.pooler) scope.LeavesOut("pooler.*");
    rotary_.Declare(scope);
    for (const char* of_contacts : {"weight", "bias"}) {
      if (options_.family == Family::kEsm) (scope / "contact_head.regression").Ignore(of_contacts);
    }
  }

  Scope ScopeOfLayer(const Scope& scope, int64_t index) const {
    const Names& names = NamesOf(options_.family);
    const Scope layers = scope / names.layers;
    if (options_.group == 0) return layers / index;
    return layers / (index / options_.group) / names.of_group / (index % options_.group);
  }

  void DeclarePositions(const Scope& encoder) {
    (encoder / "rel_embeddings")
        .Declare("weight", positions_, {options_.relative.rows(), options_.dim}, Init::kNormal);
    if (!options_.relative.normed) return;
    DeclareNorm(encoder / "LayerNorm", positions_norm_);
    encoder.AfterLoading([this](DType) { positions_ = positions_norm_(positions_); });
  }

  Signature signature() const override {
    Signature signature = SignatureOfEncoder(options_.vocabulary, options_.dim);
    const auto add_kinds = [&](const char* name, int64_t count) {
      if (count == 0) return;
      signature.inputs.push_back({.name = name,
                                  .kind = InputKind::kToken,
                                  .axes = {Axis::Ragged('n')},
                                  .optional = true,
                                  .vocabulary = count});
    };
    add_kinds("token_type_ids", options_.types);
    add_kinds("task_type_ids", options_.tasks);
    if (options_.globals.asked) {
      signature.inputs.push_back({.name = kGlobalMask,
                                  .kind = InputKind::kMask,
                                  .axes = {Axis::Ragged('n')},
                                  .optional = true});
    }
    if (options_.pooler) {
      signature.outputs.push_back({.name = "pooler_output", .axes = {Axis::Fixed(options_.dim)}});
    }
    signature.limits = {{'n', options_.longest, ""}};
    return signature;
  }

  int64_t Layers() const override { return std::ssize(turns_); }

  bool Recordable() const override { return options_.Recordable(); }

  bool LeavesOutFullMask(const std::string& input) const override { return input != kGlobalMask; }

  double Flops(int64_t length) const override {
    double flops = 0;
    for (const Turn& turn : turns_) {
      flops += turn.layer->Flops(std::max(length, options_.landmarks.length()));
    }
    return flops;
  }

  NetworkNotes Notes() const override {
    if (options_.landmarks.count == 0) {
      const char* cost = options_.globals.defined() ? "linear" : "quadratic";
      return {.facts = {{"cost of attention", std::string(cost) + " in the length"}},
              .warnings = {}};
    }
    const std::string rows = std::to_string(options_.landmarks.length());
    return {.facts = {{"cost of attention", "linear in the length"},
                      {"rows computed", rows + " of each sequence, of which landmarks are means"}},
            .warnings = {}};
  }

  std::unique_ptr<Pass> Begin(TensorBatch batch) const override;

 private:
  class EncoderPass;

  Context ContextOf(const TensorBatch& batch) const;
  std::unique_ptr<Pass> BeginAsItIs(const TensorBatch& batch) const;

  Options options_;
  Embeddings embeddings_;
  RotaryTables rotary_;
  std::deque<Layer> layers_;
  std::deque<Turn> turns_;
  at::Tensor distances_;  // [buckets, heads]
  at::Tensor slopes_;     // of ALiBi
  at::Tensor positions_;  // the table of relative ones, until the layers have read it
  LayerNorm norm_;
  LayerNorm positions_norm_;
  Linear pooler_;
};

class EncoderNetwork::EncoderPass : public LayerPass<Turn, Context> {
 public:
  EncoderPass(const EncoderNetwork& network, at::Tensor rows, Context context)
      : LayerPass(network.turns_, std::move(rows), std::move(context)), network_(network) {}

  at::Tensor Output(const std::string& name, int64_t begin, int64_t end) override {
    if (name == "pooler_output") return Pooled(begin, end);
    return Normed(Rows(begin, end));
  }

 private:
  at::Tensor Normed(const at::Tensor& rows) const {
    return network_.options_.pre_norm ? network_.norm_(rows) : rows;
  }
  // Returns what the pooler makes of each sequence's first row.
  at::Tensor Pooled(int64_t begin, int64_t end) const {
    // Where padding takes part the layout has no table, on a device either.
    const PlacedLayout& layout = context().layout;
    const at::Tensor starts = layout.table
                                  ? layout.table->starts
                                  : at::tensor(layout.starts, at::kLong).to(rows().device());
    const at::Tensor first = rows().index_select(0, starts.narrow(0, begin, end - begin));
    return network_.pooler_(Normed(first)).tanh_();
  }

  const EncoderNetwork& network_;
};

Context EncoderNetwork::ContextOf(const TensorBatch& batch) const {
  Context context{.layout = ComputedLayout(batch.axes.at('n'), batch.padding),
                  .mask = batch.Find("attention_mask")};
  const at::TensorOptions floats = embeddings_.options().dtype(at::kFloat);
  context.key_scores = BlockAttention::ScoresOfKeys(context.mask);
  const int64_t longest = context.layout.most_rows();
  const double root = std::sqrt(static_cast<double>(options_.dim_head()));
  context.globals = FindGlobalTokens(options_.globals, context.layout, batch["x"], context.mask,
                                     batch.Find(kGlobalMask), 1 / root);
  if (options_.distances) {
    constexpr int64_t kFurthest = 128;
    context.distances =
        ByDistance(distances_.to(at::kFloat), longest + kDistancesBeyond, kFurthest).mul_(root);
  }
  if (options_.alibi) {
    context.distances = Alibi(slopes_, longest + kDistancesBeyond).mul_(root);
  }
  if (options_.relative.defined()) {
    context.places = PlacesByDistance(options_.relative, longest).to(floats.device());
  }
  context.rotations = rotary_(longest, floats);
  return context;
}

std::unique_ptr<Pass> EncoderNetwork::Begin(TensorBatch batch) const {
  if (options_.landmarks.count == 0) return BeginAsItIs(batch);
  return std::make_unique<FullLengthPass>(
      std::move(batch), FullLength{options_.landmarks.length(), options_.pad_token},
      [this](const TensorBatch& full) { return BeginAsItIs(full); });
}

std::unique_ptr<Pass> EncoderNetwork::BeginAsItIs(const TensorBatch& batch) const {
  Context context = ContextOf(batch);
  const TokenKinds kinds{.types = batch.Find("token_type_ids"),
                         .tasks = batch.Find("task_type_ids")};
  at::Tensor rows = embeddings_(batch["x"], kinds, context);
  return std::make_unique<EncoderPass>(*this, std::move(rows), std::move(context));
}

}  // namespace

std::unique_ptr<Network> MakeModel(Family family, Params& params) {
  return MakeEncoder(Options::From(family, params));
}

std::unique_ptr<Network> MakeEncoder(Options options) {
  return std::make_unique<EncoderNetwork>(std::move(options));
}

}  // namespace linserve::transformers
