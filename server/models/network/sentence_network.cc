#include "models/network/sentence_network.h"

#include <utility>

#include "attention/rows/aten.h"
#include "models/config/config_error.h"

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
  return Activation::kIdentity;
}

// Makes one vector of the rows [rows, width] that are there, in F32.
at::Tensor Pooled(const at::Tensor& rows, Pooling pooling) {
  if (pooling == Pooling::kCls) return rows.select(0, 0).to(at::kFloat);
  if (pooling == Pooling::kLast) return rows.select(0, -1).to(at::kFloat);
  if (pooling == Pooling::kMax) return rows.amax(0).to(at::kFloat);
  return rows.mean(0, /*keepdim=*/false, at::kFloat);
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
    std::vector<at::Tensor> vectors;
    for (int64_t i = begin; i < end; ++i) {
      vectors.push_back(Pooled(RowsOf(static_cast<size_t>(i)), network_.pooling_));
    }
    return network_.Apply(at::stack(vectors));
  }

 private:
  // Returns those rows of a sequence that are there.
  at::Tensor RowsOf(size_t sequence) const {
    const int64_t start = layout_.starts[sequence];
    const int64_t length = layout_.lengths[sequence];
    at::Tensor rows = encoder_->Output(output_, start, start + length);
    if (!mask_.defined()) return rows;
    return rows.index({mask_.narrow(0, start, length)});
  }

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
  for (Dense& dense : dense_) dense.linear.Declare(scope / dense.path / "linear");
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
