#include "models/linformer/linformer.h"

#include <utility>

#include "attention/linformer/linformer_attention.h"
#include "attention/positions/positions.h"
#include "attention/rows/aten.h"
#include "models/linformer/stack.h"
#include "models/tokens/token_embedding.h"

namespace linserve::linformer {
namespace {

// Is the architecture linformer.LinformerSelfAttention.
class AttentionNetwork : public Network {
 public:
  explicit AttentionNetwork(const AttentionOptions& options)
      : options_(options), attention_(MakeAttention(options)) {}

  void Declare(const Scope& scope) override { attention_.Declare(scope); }

  Signature signature() const override {
    const Axis width = Axis::Fixed(options_.dim);
    Signature signature;
    signature.inputs = {{.name = "x", .axes = {Axis::Ragged('n'), width}},
                        {.name = "context", .axes = {Axis::Ragged('m'), width}, .optional = true}};
    signature.outputs = {{.name = "y", .axes = {Axis::Ragged('n'), width}}};
    // There may be any number of queries with a context, since only keys meet proj_k.
    signature.limits = {{'n', options_.seq_len, "context"}, {'m', options_.seq_len, ""}};
    return signature;
  }

  double Flops(int64_t length) const override { return attention_.Flops(length, length); }

  SessionPlan Sessions() const override { return SessionPlan::RefusedByProjections(); }

  std::unique_ptr<Pass> Begin(TensorBatch batch) const override;

 private:
  class AttentionPass;

  AttentionOptions options_;
  ProjectedAttention attention_;
};

class AttentionNetwork::AttentionPass : public Pass {
 public:
  AttentionPass(const ProjectedAttention& attention, TensorBatch batch)
      : attention_(attention), batch_(std::move(batch)) {}

  bool Step() override {
    const PlacedLayout layout = ComputedLayout(batch_.axes.at('n'), batch_.padding);
    const at::Tensor& x = batch_["x"];
    const bool context = batch_.Has("context");
    const at::Tensor& source = context ? batch_["context"] : x;
    result_ = at::zeros_like(x);
    const PlacedLayout source_layout =
        context ? ComputedLayout(batch_.axes.at('m'), batch_.padding) : layout;
    attention_.AddTo(result_, {{x}, layout, {source}, source_layout});
    return false;
  }

  at::Tensor Output(const std::string&, int64_t begin, int64_t end) override {
    return result_.narrow(0, begin, end - begin);
  }

 private:
  const ProjectedAttention& attention_;
  TensorBatch batch_;
  at::Tensor result_;
};

std::unique_ptr<Pass> AttentionNetwork::Begin(TensorBatch batch) const {
  return std::make_unique<AttentionPass>(attention_, std::move(batch));
}

class StackPass : public Pass {
 public:
  StackPass(const Stack& stack, at::Tensor rows, PlacedLayout layout)
      : steps_(stack, std::move(rows), std::move(layout)) {}

  bool Step() override {
    if (steps_.Step()) return true;
    rows_ = steps_.Take();
    return false;
  }

  at::Tensor Output(const std::string&, int64_t begin, int64_t end) override {
    return rows_.narrow(0, begin, end - begin);
  }

 private:
  Stack::Steps steps_;
  at::Tensor rows_;
};

struct StackOptions {
  AttentionOptions attention;
  int64_t depth;
  bool reversible;

  static StackOptions From(Params& params) {
    const auto attention = AttentionOptions::From(params);
    return {attention, params.Depth("depth"), params.Flag("reversible", false)};
  }
};

// Is the architecture linformer.Linformer.
class StackNetwork : public Network {
 public:
  explicit StackNetwork(const StackOptions& options)
      : options_(options), stack_(options.attention, options.depth, options.reversible) {}

  void Declare(const Scope& scope) override { stack_.Declare(scope); }

  Signature signature() const override {
    const std::vector<Axis> rows = {Axis::Ragged('n'), Axis::Fixed(options_.attention.dim)};
    Signature signature;
    signature.inputs = {{.name = "x", .axes = rows}};
    signature.outputs = {{.name = "y", .axes = rows}};
    signature.limits = {{'n', options_.attention.seq_len, ""}};
    return signature;
  }

  int64_t Layers() const override { return options_.depth; }

  double Flops(int64_t length) const override { return stack_.Flops(length); }

  // A recorded pass is right for other lengths, too: rows of a sequence meet in ProjectLength()
  // alone.
  bool Recordable() const override { return true; }

  SessionPlan Sessions() const override { return SessionPlan::RefusedByProjections(); }

  std::unique_ptr<Pass> Begin(TensorBatch batch) const override {
    // The stack works in place, and the batch's rows belong to the caller.
    return std::make_unique<StackPass>(stack_, batch["x"].clone(),
                                       ComputedLayout(batch.axes.at('n'), batch.padding));
  }

 private:
  StackOptions options_;
  Stack stack_;
};

// Is the architecture linformer.LinformerLM.
class LanguageModelNetwork : public Network {
 public:
  LanguageModelNetwork(const StackOptions& options, int64_t num_tokens)
      : options_(options),
        num_tokens_(num_tokens),
        stack_(options.attention, options.depth, options.reversible),
        to_logits_(options.attention.dim, num_tokens) {}

  void Declare(const Scope& scope) override {
    const int64_t dim = options_.attention.dim;
    token_emb_.Declare(scope / "token_emb", num_tokens_, dim);
    (scope / "pos_emb")
        .Declare("weight", pos_emb_, {options_.attention.seq_len, dim}, Init::kNormal);
    stack_.Declare(scope / "linformer");
    to_logits_.DeclareLogits(scope / "to_logits");
  }

  Signature signature() const override {
    const Axis length = Axis::Ragged('n');
    Signature signature;
    signature.inputs = {
        {.name = "x", .kind = InputKind::kToken, .axes = {length}, .vocabulary = num_tokens_}};
    signature.outputs = {
        {.name = "embeddings", .axes = {length, Axis::Fixed(options_.attention.dim)}},
        {.name = "y", .axes = {length, Axis::Fixed(num_tokens_)}}};
    signature.limits = {{'n', options_.attention.seq_len, ""}};
    return signature;
  }

  int64_t Layers() const override { return options_.depth; }

  double Flops(int64_t length) const override {
    return stack_.Flops(length) +
           static_cast<double>(to_logits_.Flops()) * static_cast<double>(length);
  }

  bool Recordable() const override { return true; }

  SessionPlan Sessions() const override { return SessionPlan::RefusedByProjections(); }

  std::unique_ptr<Pass> Begin(TensorBatch batch) const override {
    PlacedLayout layout = ComputedLayout(batch.axes.at('n'), batch.padding);
    at::Tensor rows = token_emb_(batch["x"]);
    AddPositions(rows, layout, pos_emb_);
    return std::make_unique<LanguageModelPass>(*this, std::move(rows), std::move(layout));
  }

 private:
  class LanguageModelPass : public StackPass {
   public:
    LanguageModelPass(const LanguageModelNetwork& network, at::Tensor rows, PlacedLayout layout)
        : StackPass(network.stack_, std::move(rows), std::move(layout)), network_(network) {}

    at::Tensor Output(const std::string& name, int64_t begin, int64_t end) override {
      const at::Tensor rows = StackPass::Output(name, begin, end);
      return name == "y" ? network_.to_logits_(rows) : rows;
    }

   private:
    const LanguageModelNetwork& network_;
  };

  StackOptions options_;
  int64_t num_tokens_;
  TokenEmbedding token_emb_;
  at::Tensor pos_emb_;
  Stack stack_;
  Linear to_logits_;
};

}  // namespace

std::unique_ptr<Network> MakeSelfAttention(Params& params) {
  return std::make_unique<AttentionNetwork>(AttentionOptions::From(params));
}

std::unique_ptr<Network> MakeStack(Params& params) {
  return std::make_unique<StackNetwork>(StackOptions::From(params));
}

std::unique_ptr<Network> MakeLanguageModel(Params& params) {
  const StackOptions options = StackOptions::From(params);
  return std::make_unique<LanguageModelNetwork>(options, params.Positive("num_tokens"));
}

}  // namespace linserve::linformer
