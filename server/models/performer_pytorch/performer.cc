#include "models/performer_pytorch/performer.h"

#include <utility>

#include "attention/rows/aten.h"
#include "models/performer_pytorch/language_model.h"
#include "models/performer_pytorch/stack.h"

namespace linserve::performer_pytorch {
namespace {

SessionPlan PlanOf(const Options& options, const Stack& stack) {
  SessionPlan plan{{}, options.SessionRefusal()};
  if (plan.refusal.empty()) plan.slots = stack.State();
  return plan;
}

// Adds the inputs besides x.
void AddInputs(const Options& options, Signature& signature) {
  AddMask(signature, "mask");
  if (options.cross_attend) AddContext(signature, options.dim);
}

class StackPass : public Pass {
 public:
  // The stack works in place, and the batch's rows belong to the caller.
  StackPass(const Stack& stack, const at::Tensor& x, Sequences sequences)
      : steps_(stack, x.clone(), std::move(sequences)) {}

  bool Step() override {
    if (steps_.Step()) return true;
    rows_ = steps_.streams().TakeSum();
    return false;
  }

  at::Tensor Output(const std::string&, int64_t begin, int64_t end) override {
    return rows_.narrow(0, begin, end - begin);
  }

 private:
  Stack::Steps steps_;
  at::Tensor rows_;
};

// Is the architecture performer_pytorch.Performer.
class StackNetwork : public Network {
 public:
  explicit StackNetwork(const Options& options) : options_(options), stack_(StackOf(options)) {}

  void Declare(const Scope& scope) override { performer_pytorch::Declare(stack_, scope); }

  Signature signature() const override {
    const std::vector<Axis> rows = {Axis::Ragged('n'), Axis::Fixed(options_.dim)};
    Signature signature;
    signature.inputs = {{.name = "x", .axes = rows}};
    signature.outputs = {{.name = "y", .axes = rows, .mask = "mask"}};
    AddInputs(options_, signature);
    return signature;
  }

  int64_t Layers() const override { return stack_.Layers(); }
  double Flops(int64_t length) const override { return stack_.Flops(length, length); }
  NetworkNotes Notes() const override { return options_.Notes(); }
  SessionPlan Sessions() const override { return PlanOf(options_, stack_); }

  std::unique_ptr<Pass> Begin(TensorBatch batch) const override {
    return std::make_unique<StackPass>(stack_, batch["x"],
                                       Sequences::Of(batch, "mask", options_.cross_attend));
  }

 private:
  Options options_;
  Stack stack_;
};

class LanguageModelPass : public Pass {
 public:
  LanguageModelPass(const LanguageModel& model, const at::Tensor& ids, Sequences sequences)
      : model_(model), steps_(model.Start(ids, std::move(sequences))) {}

  bool Step() override {
    if (steps_.Step()) return true;
    embeddings_ = model_.Embeddings(steps_.streams().TakeSum());
    return false;
  }

  at::Tensor Output(const std::string& name, int64_t begin, int64_t end) override {
    const at::Tensor rows = embeddings_.narrow(0, begin, end - begin);
    return name == "y" ? model_.Output(rows) : rows;
  }

 private:
  const LanguageModel& model_;
  Stack::Steps steps_;
  at::Tensor embeddings_;
};

// Is the architecture performer_pytorch.PerformerLM.
class LanguageModelNetwork : public Network {
 public:
  explicit LanguageModelNetwork(const LanguageModelOptions& options)
      : options_(options), model_(options) {}

  void Declare(const Scope& scope) override { model_.Declare(scope); }

  Signature signature() const override {
    const Axis length = Axis::Ragged('n');
    Signature signature;
    signature.inputs = {{.name = "x",
                         .kind = InputKind::kToken,
                         .axes = {length},
                         .vocabulary = options_.num_tokens}};
    signature.outputs = {
        {.name = "embeddings", .axes = {length, Axis::Fixed(options_.stack.dim)}, .mask = "mask"},
        {.name = "y",
         .axes = {length, Axis::Fixed(model_.output_width())},
         .logits = !options_.return_encodings,
         .mask = "mask"}};
    signature.limits = {{'n', options_.LongestInput(), ""}};
    AddInputs(options_.stack, signature);
    return signature;
  }

  int64_t Layers() const override { return model_.stack().Layers(); }
  double Flops(int64_t length) const override { return model_.Flops(length, length); }
  NetworkNotes Notes() const override { return options_.stack.Notes(); }
  SessionPlan Sessions() const override { return PlanOf(options_.stack, model_.stack()); }

  std::unique_ptr<Pass> Begin(TensorBatch batch) const override {
    return std::make_unique<LanguageModelPass>(
        model_, batch["x"], Sequences::Of(batch, "mask", options_.stack.cross_attend));
  }

 private:
  LanguageModelOptions options_;
  LanguageModel model_;
};

}  // namespace

std::unique_ptr<Network> MakeStack(Params& params) {
  return std::make_unique<StackNetwork>(Options::From(params));
}

std::unique_ptr<Network> MakeLanguageModel(Params& params) {
  return std::make_unique<LanguageModelNetwork>(LanguageModelOptions::From(params));
}

}  // namespace linserve::performer_pytorch
