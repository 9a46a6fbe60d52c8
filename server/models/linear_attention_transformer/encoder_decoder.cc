#include "models/linear_attention_transformer/encoder_decoder.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "attention/rows/aten.h"
#include "models/linear_attention_transformer/language_model.h"

namespace linserve::linear_attention_transformer {
namespace {

// Passes through the encoder's layers and then the decoder's.
class EncoderDecoderPass : public Pass {
 public:
  EncoderDecoderPass(const LanguageModel& encoder, const LanguageModel& decoder,
                     const TensorBatch& batch)
      : decoder_model_(decoder), ids_(batch["y"]) {
    target_ = {ComputedLayout(batch.axes.at('m'), batch.padding), batch.Find("y_mask")};
    memory_ = batch.memory;
    if (memory_ && !batch.Find("x").defined()) {
      StartDecoder({});  // it knows its context
      return;
    }
    source_ = {ComputedLayout(batch.axes.at('n'), batch.padding), batch.Find("x_mask")};
    Sequences sequences;
    sequences.own = source_;
    encoder_.emplace(encoder, batch["x"], std::move(sequences));
  }

  bool Step() override {
    if (!decoder_) {
      if (encoder_->Step()) return true;
      StartDecoder(encoder_->TakeEmbeddings());
      encoder_.reset();
      return true;
    }
    if (decoder_->Step()) return true;
    embeddings_ = decoder_->TakeEmbeddings();
    return false;
  }

  at::Tensor Output(const std::string& name, int64_t begin, int64_t end) override {
    const at::Tensor rows = embeddings_.narrow(0, begin, end - begin);
    return name == "y" ? decoder_model_.Output(rows) : rows;
  }

 private:
  void StartDecoder(const at::Tensor& context) {
    Sequences sequences;
    sequences.own = target_;
    sequences.context = context;
    sequences.context_layout = source_;
    sequences.memory = memory_;
    decoder_.emplace(decoder_model_, ids_, std::move(sequences));
  }

  const LanguageModel& decoder_model_;
  at::Tensor ids_;
  MaskedLayout source_, target_;
  std::shared_ptr<SessionMemory> memory_;
  std::optional<LanguageModel::Steps> encoder_, decoder_;
  at::Tensor embeddings_;
};

class EncoderDecoderNetwork : public Network {
 public:
  EncoderDecoderNetwork(const LanguageModelOptions& encoder, const LanguageModelOptions& decoder)
      : encoder_(encoder), decoder_(decoder) {}

  void Declare(const Scope& scope) override {
    encoder_.Declare(scope / "encoder");
    decoder_.Declare(scope / "decoder");
  }

  Signature signature() const override {
    const Axis n = Axis::Ragged('n');
    const Axis m = Axis::Ragged('m');
    const LanguageModelOptions& source = encoder_.options();
    const LanguageModelOptions& target = decoder_.options();
    Signature signature;
    signature.inputs = {
        {.name = "x",
         .kind = InputKind::kToken,
         .axes = {n},
         .vocabulary = source.num_tokens,
         .opens = true},
        {.name = "x_mask", .kind = InputKind::kMask, .axes = {n}, .optional = true, .opens = true},
        {.name = "y", .kind = InputKind::kToken, .axes = {m}, .vocabulary = target.num_tokens},
        {.name = "y_mask", .kind = InputKind::kMask, .axes = {m}, .optional = true}};
    signature.outputs = {
        {.name = "embeddings", .axes = {m, Axis::Fixed(target.emb_dim)}, .mask = "y_mask"},
        {.name = "y",
         .axes = {m, Axis::Fixed(decoder_.output_width())},
         .logits = !target.return_embeddings,
         .mask = "y_mask"}};
    int64_t longest = source.LongestInput();
    if (const auto& context = target.stack.context_linformer_settings) {
      longest = std::min(longest, context->seq_len);
    }
    signature.limits = {{'n', longest, ""}, {'m', target.LongestInput(), ""}};
    return signature;
  }

  int64_t Layers() const override { return encoder_.Layers() + decoder_.Layers(); }

  double Flops(int64_t length) const override {
    const int64_t targets = std::min(length, decoder_.options().LongestInput());
    return encoder_.Flops(length, 0) + decoder_.Flops(targets, length);
  }

  NetworkNotes Notes() const override {
    NetworkNotes notes;
    Add("encoder", encoder_, notes);
    Add("decoder", decoder_, notes);
    return notes;
  }

  SessionPlan Sessions() const override {
    const std::string refusal = decoder_.options().stack.SessionRefusal();
    if (!refusal.empty()) return SessionPlan::Refused("decoder: " + refusal);
    return {decoder_.State(), {}};
  }

  std::unique_ptr<Pass> Begin(TensorBatch batch) const override {
    return std::make_unique<EncoderDecoderPass>(encoder_, decoder_, batch);
  }

 private:
  static void Add(const std::string& part, const LanguageModel& model, NetworkNotes& notes) {
    const NetworkNotes own = model.options().stack.Notes();
    for (const auto& [name, value] : own.facts) notes.facts.emplace_back(part + " " + name, value);
    for (const auto& warning : own.warnings) notes.warnings.push_back(part + ": " + warning);
  }

  LanguageModel encoder_;
  LanguageModel decoder_;
};

Params& Part(Params& params, const char* key) {
  Params* part = params.Object(key);
  if (part == nullptr) params.Fail(key, "the arguments of a LinearAttentionTransformerLM");
  return *part;
}

// The flags that make the pair may be left out.
LanguageModelOptions OptionsOfEncoder(Params& params) {
  auto options = LanguageModelOptions::From(params, {.dim_head = 64, .return_embeddings = true});
  if (!options.return_embeddings) {
    params.Fail("return_embeddings", "true: the decoder reads the encoder's embeddings");
  }
  if (options.stack.receives_context) {
    params.Fail("receives_context", "false: nothing gives the encoder a context");
  }
  return options;
}

LanguageModelOptions OptionsOfDecoder(Params& params, const LanguageModelOptions& encoder) {
  auto options = LanguageModelOptions::From(params, {.dim_head = 64, .receives_context = true});
  if (!options.stack.receives_context) {
    params.Fail("receives_context", "true: the decoder reads the encoder's embeddings");
  }
  if (options.stack.dim != encoder.emb_dim) {
    params.Fail("dim", "the encoder's dim = " + std::to_string(encoder.emb_dim));
  }
  return options;
}

}  // namespace

std::unique_ptr<Network> MakeEncoderDecoder(Params& params) {
  const LanguageModelOptions encoder = OptionsOfEncoder(Part(params, "encoder"));
  const LanguageModelOptions decoder = OptionsOfDecoder(Part(params, "decoder"), encoder);
  return std::make_unique<EncoderDecoderNetwork>(encoder, decoder);
}

}  // namespace linserve::linear_attention_transformer
