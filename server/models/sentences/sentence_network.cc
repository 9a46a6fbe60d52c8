#include "models/sentences/sentence_network.h"

#include <utility>

#include "attention/rows/aten.h"
#include "models/config/config_error.h"
#include "models/sentences/pooled_sequences.h"

namespace linserve {
namespace {

constexpr const char* kOutput = "sentence_embedding";

// REQUIRES: one of the names that ReadSentenceModules() takes.
Activation DenseActivation(const std::string& name) {
  if (name == "Tanh") return Activation::kTanh;
  if (name == "ReLU") return Activation::kRelu;
  if (name == "GELU") return Activation::kGelu;
  if (name == "SiLU") return Activation::kSilu;
  if (name == "Sigmoid") return Activation::kSigmoid;
  if (name == "Mish") return Activation::kMish;
  if (name == "ReLU6") return Activation::kRelu6;
  return Activation::kIdentity;
}

}  // namespace

class SentenceNetwork::SentencePass : public Pass {
 public:
  SentencePass(const SentenceNetwork& network, TensorBatch batch) : network_(network) {
    const OutputSpec rows = network.encoder_->signature().outputs[0];
    output_ = rows.name;
    layout_ = batch.axes.at(rows.axes[0].letter);
    mask_ = batch.Find(rows.mask);
    encoder_ = network.encoder_->Begin(std::move(batch));
  }

  bool Step() override { return encoder_->Step(); }

  at::Tensor Output(const std::string& name, int64_t begin, int64_t end) override {
    if (name != kOutput) return encoder_->Output(name, begin, end);
    const auto rows = [this](int64_t first, int64_t last) {
      return encoder_->Output(output_, first, last);
    };
    return network_.Apply(PoolSequences(rows, layout_, mask_, begin, end, network_.pooling_));
  }

 private:
  const SentenceNetwork& network_;
  std::string output_;
  PlacedLayout layout_;
  at::Tensor mask_;
  std::unique_ptr<Pass> encoder_;
};

SentenceNetwork::SentenceNetwork(std::unique_ptr<Network> encoder, const SentenceModules& modules)
    : encoder_(std::move(encoder)), pooling_(modules.pooling) {
  int64_t width = encoder_->signature().outputs[0].axes.back().size;
  for (const DenseModule& module : modules.dense) {
    if (module.inputs != width) {
      throw ConfigError(module.path + "/config.json: in_features is " +
                        std::to_string(module.inputs) + ", but what comes before it gives " +
                        std::to_string(width));
    }
    width = module.outputs;
    dense_.push_back({module.path, Linear(module.inputs, module.outputs, module.biased),
                      DenseActivation(module.activation)});
  }
}

void SentenceNetwork::Declare(const Scope& scope) {
  encoder_->Declare(scope);
  for (Dense& dense : dense_) {
    dense.linear.Declare(scope / dense.path / "linear");
    // Vectors are pooled in F32, and so few that a device, too, multiplies them in it.
    scope.AfterLoading([&linear = dense.linear](DType) {
      for (at::Tensor* tensor : {&linear.weight, &linear.bias}) {
        if (tensor->defined()) *tensor = tensor->to(at::kFloat);
      }
    });
  }
}

Signature SentenceNetwork::signature() const {
  Signature signature = encoder_->signature();
  signature.outputs.insert(signature.outputs.begin(),
                           {.name = kOutput,
                            .axes = {Axis::Fixed(dense_.back().linear.outputs)},
                            .mask = signature.outputs[0].mask});
  return signature;
}

double SentenceNetwork::Flops(int64_t length) const {
  double flops = encoder_->Flops(length);
  for (const Dense& dense : dense_) flops += static_cast<double>(dense.linear.Flops());
  return flops;
}

std::unique_ptr<Pass> SentenceNetwork::Begin(TensorBatch batch) const {
  return std::make_unique<SentencePass>(*this, std::move(batch));
}

at::Tensor SentenceNetwork::Apply(at::Tensor vectors) const {
  for (const Dense& dense : dense_) {
    vectors = dense.linear(vectors);
    Activate(dense.activation, vectors);
  }
  return vectors;
}

}  // namespace linserve
