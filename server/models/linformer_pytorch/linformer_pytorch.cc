#include "models/linformer_pytorch/linformer_pytorch.h"

#include <string>
#include <utility>

#include "attention/rows/aten.h"
#include "models/config/wrappers.h"
#include "models/linformer_pytorch/inputs.h"
#include "models/linformer_pytorch/language_model.h"
#include "models/linformer_pytorch/stack.h"

namespace linserve::linformer_pytorch {
namespace {

NetworkNotes NotesOf(const PostNormStack& stack, const ConditionInputs& inputs) {
  NetworkNotes notes{{{"projections", std::to_string(stack.Matrices()) + " distinct matrices"}},
                     stack.Warnings()};
  inputs.AddTo(notes);
  return notes;
}

SessionPlan NoSessions() {
  return SessionPlan::Refused(
      "its attention needs the whole input, to project it along its length or, with "
      "full_attention, as keys");
}

// Is the architecture linformer_pytorch.MHAttention.
class AttentionNetwork : public Network {
 public:
  AttentionNetwork(const HeadOptions& options, const LayerScratch& scratch, bool decoder)
      : options_(options),
        scratch_(scratch),
        decoder_(decoder),
        inputs_(decoder, /*padder=*/false, options.width, options.input_size),
        attention_(options, nullptr) {}

  void Declare(const Scope& scope) override { attention_.Declare(scope); }

  Signature signature() const override {
    const std::vector<Axis> rows = {Axis::Ragged('n'), Axis::Fixed(options_.width)};
    Signature signature;
    signature.inputs = {{.name = "x", .axes = rows}};
    signature.outputs = {{.name = "y", .axes = rows, .mask = "input_mask"}};
    inputs_.AddTo(signature);
    return signature;
  }

  double Flops(int64_t length) const override { return attention_.Flops(length, length); }

  NetworkNotes Notes() const override {
    return {{{"projections", std::to_string(attention_.OwnMatrices()) + " distinct matrices"}}, {}};
  }

  SessionPlan Sessions() const override { return NoSessions(); }

  std::unique_ptr<Pass> Begin(TensorBatch batch) const override {
    return std::make_unique<AttentionPass>(*this, std::move(batch));
  }

 private:
  class AttentionPass : public Pass {
   public:
    AttentionPass(const AttentionNetwork& network, TensorBatch batch)
        : network_(network), batch_(std::move(batch)) {}

    bool Step() override {
      const StackContext context = network_.inputs_.From(batch_);
      const bool cross = network_.decoder_;
      const at::Tensor& x = batch_["x"];
      const AttentionInput input{x,
                                 context.layout,
                                 cross ? context.embeddings : x,
                                 cross ? context.embeddings_layout : context.layout,
                                 context.hidden_queries,
                                 cross ? context.hidden_embeddings : context.hidden_rows};
      result_ = at::empty_like(x);
      network_.attention_.Forward(input, network_.scratch_,
                                  [&](int64_t begin, const at::Tensor& rows) {
                                    result_.narrow(0, begin, rows.size(0)).copy_(rows);
                                  });
      return false;
    }

    at::Tensor Output(const std::string&, int64_t begin, int64_t end) override {
      return result_.narrow(0, begin, end - begin);
    }

   private:
    const AttentionNetwork& network_;
    TensorBatch batch_;
    at::Tensor result_;
  };

  HeadOptions options_;
  LayerScratch scratch_;
  bool decoder_;
  ConditionInputs inputs_;
  MultiHeadAttention attention_;
};

// Is the architecture linformer_pytorch.Linformer.
class StackNetwork : public Network {
 public:
  StackNetwork(const StackOptions& options, bool padder)
      : inputs_(options.decoder_mode, padder, options.channels(), options.attention.input_size),
        stack_(options) {}

  void Declare(const Scope& scope) override { stack_.Declare(scope); }

  Signature signature() const override {
    const std::vector<Axis> rows = {Axis::Ragged('n'), Axis::Fixed(stack_.options().channels())};
    Signature signature;
    signature.inputs = {{.name = "x", .axes = rows}};
    signature.outputs = {{.name = "y", .axes = rows, .mask = "input_mask"}};
    inputs_.AddTo(signature);
    return signature;
  }

  int64_t Layers() const override { return stack_.Layers(); }

  double Flops(int64_t length) const override { return stack_.Flops(length); }
  NetworkNotes Notes() const override { return NotesOf(stack_, inputs_); }

  SessionPlan Sessions() const override { return NoSessions(); }

  std::unique_ptr<Pass> Begin(TensorBatch batch) const override {
    // The stack works in place, and the batch's rows belong to the caller.
    return std::make_unique<StackPass>(stack_, batch["x"].clone(), inputs_.From(batch));
  }

 private:
  class StackPass : public Pass {
   public:
    StackPass(const PostNormStack& stack, at::Tensor rows, StackContext context)
        : steps_(stack, std::move(rows), std::move(context)) {}

    bool Step() override { return steps_.Step(); }

    at::Tensor Output(const std::string&, int64_t begin, int64_t end) override {
      return steps_.rows().narrow(0, begin, end - begin);
    }

   private:
    PostNormStack::Steps steps_;
  };

  ConditionInputs inputs_;
  PostNormStack stack_;
};

// Is the architecture linformer_pytorch.LinformerLM.
class LanguageModelNetwork : public Network {
 public:
  LanguageModelNetwork(const LanguageModelOptions& options, bool padder)
      : inputs_(options.stack.decoder_mode, padder, options.stack.channels(),
                options.stack.attention.input_size),
        model_(options) {}

  void Declare(const Scope& scope) override { model_.Declare(scope); }

  Signature signature() const override {
    Signature signature;
    signature.inputs = {{.name = "x",
                         .kind = InputKind::kToken,
                         .axes = {Axis::Ragged('n')},
                         .vocabulary = model_.options().num_tokens}};
    model_.AddOutputs(signature);
    inputs_.AddTo(signature);
    return signature;
  }

  int64_t Layers() const override { return model_.stack().Layers(); }

  double Flops(int64_t length) const override { return model_.Flops(length); }
  NetworkNotes Notes() const override { return NotesOf(model_.stack(), inputs_); }

  SessionPlan Sessions() const override { return NoSessions(); }

  std::unique_ptr<Pass> Begin(TensorBatch batch) const override {
    return std::make_unique<LanguageModelPass>(model_, batch["x"], inputs_.From(batch));
  }

 private:
  class LanguageModelPass : public Pass {
   public:
    LanguageModelPass(const LanguageModel& model, const at::Tensor& ids,
                      const StackContext& context)
        : model_(model), steps_(model.stack(), model.StackInput(ids, context.layout), context) {}

    bool Step() override { return steps_.Step(); }

    at::Tensor Output(const std::string& name, int64_t begin, int64_t end) override {
      return model_.Output(name, steps_.rows().narrow(0, begin, end - begin));
    }

   private:
    const LanguageModel& model_;
    PostNormStack::Steps steps_;
  };

  ConditionInputs inputs_;
  LanguageModel model_;
};

}  // namespace

std::unique_ptr<Network> MakeAttention(Params& params) {
  IgnoreVisualizer(params);
  const HeadOptions options = HeadOptions::FromAttention(params);
  const LayerScratch scratch = LayerScratch::From(params);
  const bool decoder = params.Flag("decoder_mode", false);
  return std::make_unique<AttentionNetwork>(options, scratch, decoder);
}

std::unique_ptr<Network> MakeStack(Params& params) {
  IgnoreVisualizer(params);
  const bool padder = params.Wrapper(kLinformerPytorchPadder) != nullptr;
  return std::make_unique<StackNetwork>(StackOptions::From(params, StackOptions::Owner::kLinformer),
                                        padder);
}

std::unique_ptr<Network> MakeLanguageModel(Params& params) {
  IgnoreVisualizer(params);
  const bool padder = params.Wrapper(kLinformerPytorchPadder) != nullptr;
  return std::make_unique<LanguageModelNetwork>(
      LanguageModelOptions::From(params, StackOptions::Owner::kLanguageModel), padder);
}

}  // namespace linserve::linformer_pytorch
