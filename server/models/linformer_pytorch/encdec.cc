#include <optional>
#include <string>
#include <utility>

#include "attention/rows/aten.h"
#include "models/linformer_pytorch/inputs.h"
#include "models/linformer_pytorch/language_model.h"
#include "models/linformer_pytorch/linformer_pytorch.h"

namespace linserve::linformer_pytorch {
namespace {

using Owner = StackOptions::Owner;

// The decoder attends to what the encoder gives, row by row as many as it has itself.
void CheckFit(const LanguageModelOptions& encoder, const LanguageModelOptions& decoder,
              const Params& params) {
  const int64_t longest = encoder.stack.attention.input_size;
  if (decoder.stack.attention.input_size != longest) {
    params.Fail("dec_input_size", "enc_input_size = " + std::to_string(longest));
  }
  if (decoder.stack.channels() != encoder.emb_dim) {
    params.Fail("dec_channels",
                "the width of the encoder's output, enc_emb_dim (or "
                "enc_channels) = " +
                    std::to_string(encoder.emb_dim));
  }
}

class EncDecNetwork : public Network {
 public:
  EncDecNetwork(const LanguageModelOptions& encoder, const LanguageModelOptions& decoder)
      : inputs_(/*decoder=*/false, /*padder=*/false, encoder.emb_dim,
                encoder.stack.attention.input_size),
        encoder_(encoder),
        decoder_(decoder) {}

  void Declare(const Scope& scope) override {
    encoder_.Declare(scope / "encoder");
    decoder_.Declare(scope / "decoder");
  }

  Signature signature() const override {
    const std::vector<Axis> axes = {Axis::Ragged('n')};
    Signature signature;
    signature.inputs = {{.name = "x",
                         .kind = InputKind::kToken,
                         .axes = axes,
                         .vocabulary = encoder_.options().num_tokens},
                        {.name = "y",
                         .kind = InputKind::kToken,
                         .axes = axes,
                         .optional = true,
                         .vocabulary = decoder_.options().num_tokens,
                         .stand_in = "x"}};
    decoder_.AddOutputs(signature);
    // The rows are those of y, of which input_mask says nothing.
    for (OutputSpec& output : signature.outputs) output.unmasked_with = "y";
    inputs_.AddTo(signature);
    return signature;
  }

  int64_t Layers() const override { return encoder_.stack().Layers() + decoder_.stack().Layers(); }

  double Flops(int64_t length) const override {
    return encoder_.Flops(length) + decoder_.Flops(length);
  }

  NetworkNotes Notes() const override {
    const int64_t matrices = encoder_.stack().Matrices() + decoder_.stack().Matrices();
    NetworkNotes notes;
    notes.facts = {{"projections", std::to_string(matrices) + " distinct matrices"}};
    for (const LanguageModel* model : {&encoder_, &decoder_}) {
      const std::string name = model == &encoder_ ? "encoder: " : "decoder: ";
      for (const std::string& warning : model->stack().Warnings()) {
        notes.warnings.push_back(name + warning);
      }
    }
    inputs_.AddTo(notes);
    return notes;
  }

  SessionPlan Sessions() const override {
    return SessionPlan::Refused("its encoder reads the whole input before its decoder begins");
  }

  std::unique_ptr<Pass> Begin(TensorBatch batch) const override {
    return std::make_unique<EncDecPass>(*this, std::move(batch));
  }

 private:
  class EncDecPass : public Pass {
   public:
    EncDecPass(const EncDecNetwork& network, TensorBatch batch)
        : network_(network), batch_(std::move(batch)) {
      StackContext context = network_.inputs_.From(batch_);
      layout_ = context.layout;
      Start(network_.encoder_, batch_["x"], std::move(context));
    }

    bool Step() override {
      if (steps_->Step()) return true;
      if (decoding_) return false;
      decoding_ = true;
      StackContext context;
      context.layout = context.embeddings_layout = layout_;
      context.embeddings = network_.encoder_.Embeddings(steps_->rows());
      Start(network_.decoder_, batch_[batch_.Has("y") ? "y" : "x"], std::move(context));
      return true;
    }

    at::Tensor Output(const std::string& name, int64_t begin, int64_t end) override {
      return network_.decoder_.Output(name, steps_->rows().narrow(0, begin, end - begin));
    }

   private:
    void Start(const LanguageModel& model, const at::Tensor& ids, StackContext context) {
      steps_.emplace(model.stack(), model.StackInput(ids, layout_), std::move(context));
    }

    const EncDecNetwork& network_;
    TensorBatch batch_;
    PlacedLayout layout_;
    std::optional<PostNormStack::Steps> steps_;
    bool decoding_ = false;
  };

  ConditionInputs inputs_;
  LanguageModel encoder_;
  LanguageModel decoder_;
};

}  // namespace

std::unique_ptr<Network> MakeEncoderDecoder(Params& params) {
  IgnoreVisualizer(params);
  const auto encoder = LanguageModelOptions::From(params, Owner::kEncoder);
  const auto decoder = LanguageModelOptions::From(params, Owner::kDecoder);
  CheckFit(encoder, decoder, params);
  return std::make_unique<EncDecNetwork>(encoder, decoder);
}

}  // namespace linserve::linformer_pytorch
