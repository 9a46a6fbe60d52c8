#include "models/encoder/encoder.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "attention/positions/positions.h"
#include "attention/rows/aten.h"
#include "models/encoder/layer.h"
#include "models/network/layer_pass.h"
#include "models/tokens/token_embedding.h"

namespace linserve::encoder {
namespace {

constexpr double kSinusoidBase = 10000;

class EncoderNetwork : public Network {
 public:
  explicit EncoderNetwork(const Options& options) : options_(options), norm_(options.dim) {
    for (int64_t i = 0; i < options.depth; ++i) layers_.emplace_back(options);
  }

  void Declare(const Scope& scope) override {
    if (options_.num_tokens) {
      token_emb_.Declare(scope / "token_emb", *options_.num_tokens, options_.dim);
    }
    if (options_.positions == Positions::kLearned) {
      (scope / "pos_emb")
          .Declare("weight", pos_emb_, {*options_.max_seq_len, options_.dim}, Init::kNormal);
    }
    int64_t index = 0;
    for (Layer& layer : layers_) layer.Declare(scope / "layers" / index++);
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
    signature.outputs = {{.name = "y", .axes = {length, width}, .mask = "input_mask"}};
    std::optional<int64_t> longest = options_.max_seq_len;
    if (options_.linformer()) {
      longest = std::min(options_.seq_len, longest.value_or(options_.seq_len));
    }
    if (longest) signature.limits.push_back({'n', *longest, ""});
    return signature;
  }

  int64_t Layers() const override { return options_.depth; }

  double Flops(int64_t length) const override {
    return static_cast<double>(options_.depth) * layers_.front().Flops(length);
  }

  bool Recordable() const override {
    if (options_.linformer()) return !options_.causal;
    return IsKernel(*options_.method);
  }

  NetworkNotes Notes() const override {
    const bool quadratic = options_.method == AttentionMethod::kSoftmax;
    NetworkNotes notes;
    notes.facts = {
        {"cost of attention", quadratic ? "quadratic in the length" : "linear in the length"}};
    if (options_.linformer() && options_.causal) {
      notes.warnings.emplace_back(
          "causal with attention \"linformer\" hides slots, each of which mixes all positions: "
          "earlier rows still depend on later ones");
    }
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
  class EncoderPass;

  // Returns the rows that the first layer reads: a tensor of its own.
  at::Tensor Embed(const at::Tensor& x, const Context& context) const {
    at::Tensor rows = options_.num_tokens ? token_emb_(x) : x.clone();
    if (options_.positions == Positions::kLearned) {
      const at::Tensor table =
          context.memory ? pos_emb_.index_select(0, context.memory->row_positions()) : pos_emb_;
      AddPositions(rows, context.position_layout, table);
    }
    if (options_.positions == Positions::kSinusoidal) {
      AddPositions(rows, context.position_layout, SinusoidOf(context, options_.dim, rows.device()));
    }
    return rows;
  }

  // Returns what position_layout asks for.
  static at::Tensor SinusoidOf(const Context& context, int64_t width, const at::Device& device) {
    if (context.memory) return Sinusoid(context.memory->row_positions(), width, kSinusoidBase);
    return Sinusoid(context.position_layout.longest(), width, kSinusoidBase, device);
  }

  Options options_;
  TokenEmbedding token_emb_;
  at::Tensor pos_emb_;
  std::deque<Layer> layers_;
  LayerNorm norm_;
};

class EncoderNetwork::EncoderPass : public LayerPass<Layer, Context> {
 public:
  EncoderPass(const EncoderNetwork& network, at::Tensor rows, Context context)
      : LayerPass(network.layers_, std::move(rows), std::move(context)), network_(network) {}

  at::Tensor Output(const std::string&, int64_t begin, int64_t end) override {
    return network_.norm_(Rows(begin, end));
  }

 private:
  const EncoderNetwork& network_;
};

std::unique_ptr<Pass> EncoderNetwork::Begin(TensorBatch batch) const {
  Context context;
  context.layout = ComputedLayout(batch.axes.at('n'), batch.padding);
  context.mask = batch.Find("input_mask");
  context.memory = batch.memory;
  context.position_layout = batch.memory ? OneSequence(context.layout.rows) : context.layout;
  if (options_.positions == Positions::kRotary) {
    context.rotation = SinusoidOf(context, options_.dim_head, batch["x"].device());
  }
  at::Tensor rows = Embed(batch["x"], context);
  return std::make_unique<EncoderPass>(*this, std::move(rows), std::move(context));
}

}  // namespace

std::unique_ptr<Network> MakeEncoder(Params& params) {
  return std::make_unique<EncoderNetwork>(Options::From(params));
}

}  // namespace linserve::encoder
