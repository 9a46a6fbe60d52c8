#include "models/linear_attention_transformer/linear_attention_transformer.h"

#include <utility>

#include "attention/rows/aten.h"
#include "models/linear_attention_transformer/autopadder.h"
#include "models/linear_attention_transformer/language_model.h"
#include "models/linear_attention_transformer/stack.h"

namespace linserve::linear_attention_transformer {
namespace {

SessionPlan PlanOf(const Options& options, const Autopadder& autopadder) {
  SessionPlan plan{{}, options.SessionRefusal()};
  if (plan.refusal.empty()) plan.refusal = autopadder.SessionRefusal();
  return plan;
}

// Adds the inputs and limits besides x.
void AddInputs(const Options& options, Signature& signature) {
  AddMask(signature, "input_mask");
  if (!options.receives_context) return;
  AddContext(signature, options.dim);
  if (options.context_linformer_settings) {
    signature.limits.push_back({'m', options.context_linformer_settings->seq_len, ""});
  }
}

// Returns how many rows Linformer's projections have, which no input may exceed; 0: any number.
int64_t LongestInput(const Options& options) {
  return options.linformer_settings ? options.max_seq_len : 0;
}

class StackPass : public Pass {
 public:
  StackPass(const Stack& stack, const Autopadder& autopadder, const at::Tensor& x,
            Sequences sequences)
      : autopadded_(sequences.memory ? Autopadder::OfChunks() : autopadder, sequences.own.layout),
        steps_(stack, Rows(x), Padded(x, std::move(sequences))) {}

  bool Step() override {
    if (steps_.Step()) return true;
    rows_ = autopadded_.Cut(steps_.streams().TakeMean());
    return false;
  }

  at::Tensor Output(const std::string&, int64_t begin, int64_t end) override {
    return rows_.narrow(0, begin, end - begin);
  }

 private:
  // The stack works in place, and the batch's rows belong to the caller.
  at::Tensor Rows(const at::Tensor& x) const {
    at::Tensor rows = autopadded_.Pad(x);
    return rows.is_same(x) ? x.clone() : rows;
  }

  Sequences Padded(const at::Tensor& x, Sequences sequences) const {
    sequences.own = autopadded_.Pad(sequences.own.mask, x.options());
    return sequences;
  }

  Autopadded autopadded_;
  Stack::Steps steps_;
  at::Tensor rows_;
};

// Is the architecture linear_attention_transformer.LinearAttentionTransformer.
class StackNetwork : public Network {
 public:
  StackNetwork(const Options& options, Autopadder autopadder)
      : options_(options), autopadder_(autopadder), stack_(StackOf(options)) {}

  void Declare(const Scope& scope) override { stack_.Declare(scope / "layers"); }

  Signature signature() const override {
    const std::vector<Axis> rows = {Axis::Ragged('n'), Axis::Fixed(options_.dim)};
    Signature signature;
    signature.inputs = {{.name = "x", .axes = rows}};
    signature.outputs = {{.name = "y", .axes = rows, .mask = "input_mask"}};
    if (LongestInput(options_) > 0) signature.limits = {{'n', LongestInput(options_), ""}};
    AddInputs(options_, signature);
    return signature;
  }

  int64_t Layers() const override { return stack_.Layers(); }

  double Flops(int64_t length) const override {
    return stack_.Flops(length, options_.ContextRows(length));
  }

  bool Recordable() const override { return options_.Recordable() && !autopadder_.pads(); }

  NetworkNotes Notes() const override {
    NetworkNotes notes = options_.Notes();
    autopadder_.Describe(notes);
    return notes;
  }

  SessionPlan Sessions() const override {
    SessionPlan plan = PlanOf(options_, autopadder_);
    if (plan.refusal.empty()) plan.slots = stack_.State();
    return plan;
  }

  std::unique_ptr<Pass> Begin(TensorBatch batch) const override {
    return std::make_unique<StackPass>(
        stack_, autopadder_, batch["x"],
        Sequences::Of(batch, "input_mask", options_.receives_context));
  }

 private:
  Options options_;
  Autopadder autopadder_;
  Stack stack_;
};

class LanguageModelPass : public Pass {
 public:
  LanguageModelPass(const LanguageModel& model, const at::Tensor& ids, Sequences sequences)
      : model_(model), steps_(model, ids, std::move(sequences)) {}

  bool Step() override {
    if (steps_.Step()) return true;
    embeddings_ = steps_.TakeEmbeddings();
    return false;
  }

  at::Tensor Output(const std::string& name, int64_t begin, int64_t end) override {
    const at::Tensor rows = embeddings_.narrow(0, begin, end - begin);
    return name == "y" ? model_.Output(rows) : rows;
  }

 private:
  const LanguageModel& model_;
  LanguageModel::Steps steps_;
  at::Tensor embeddings_;
};

// Is the architecture linear_attention_transformer.LinearAttentionTransformerLM.
class LanguageModelNetwork : public Network {
 public:
  LanguageModelNetwork(const LanguageModelOptions& options, Autopadder autopadder)
      : options_(options), autopadder_(autopadder), model_(options, autopadder) {}

  void Declare(const Scope& scope) override { model_.Declare(scope); }

  Signature signature() const override {
    const Axis length = Axis::Ragged('n');
    Signature signature;
    signature.inputs = {{.name = "x",
                         .kind = InputKind::kToken,
                         .axes = {length},
                         .vocabulary = options_.num_tokens}};
    signature.outputs = {{.name = "embeddings",
                          .axes = {length, Axis::Fixed(options_.emb_dim)},
                          .mask = "input_mask"},
                         {.name = "y",
                          .axes = {length, Axis::Fixed(model_.output_width())},
                          .logits = !options_.return_embeddings,
                          .mask = "input_mask"}};
    signature.limits = {{'n', options_.LongestInput(), ""}};
    AddInputs(options_.stack, signature);
    return signature;
  }

  int64_t Layers() const override { return model_.Layers(); }

  double Flops(int64_t length) const override {
    return model_.Flops(length, options_.stack.ContextRows(length));
  }

  bool Recordable() const override { return options_.stack.Recordable() && !autopadder_.pads(); }

  NetworkNotes Notes() const override {
    NetworkNotes notes = options_.stack.Notes();
    autopadder_.Describe(notes);
    return notes;
  }

  SessionPlan Sessions() const override {
    SessionPlan plan = PlanOf(options_.stack, autopadder_);
    if (plan.refusal.empty()) plan.slots = model_.State();
    return plan;
  }

  std::unique_ptr<Pass> Begin(TensorBatch batch) const override {
    return std::make_unique<LanguageModelPass>(
        model_, batch["x"], Sequences::Of(batch, "input_mask", options_.stack.receives_context));
  }

 private:
  LanguageModelOptions options_;
  Autopadder autopadder_;
  LanguageModel model_;
};

}  // namespace

std::unique_ptr<Network> MakeStack(Params& params) {
  const Options options = Options::From(params);
  params.Ignore("bucket_size");  // the package never reads it
  return std::make_unique<StackNetwork>(options,
                                        Autopadder::From(params, options, LongestInput(options)));
}

std::unique_ptr<Network> MakeLanguageModel(Params& params) {
  const auto options = LanguageModelOptions::From(params);
  return std::make_unique<LanguageModelNetwork>(
      options, Autopadder::From(params, options.stack, options.LongestInput()));
}

}  // namespace linserve::linear_attention_transformer
