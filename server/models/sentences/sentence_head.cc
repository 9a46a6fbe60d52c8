#include "models/sentences/sentence_head.h"

#include <string>

#include "models/config/config_error.h"

namespace linserve {
namespace {

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

Head SentenceHead(const Signature& encoder, const SentenceModules& modules) {
  const OutputSpec& rows = encoder.outputs[0];
  Head head{.output = modules.each_row ? "token_embeddings" : "sentence_embedding",
            .encoder = "",
            .input = rows.name,
            .pooling = modules.pooling,
            .pools_some = modules.leaves_out_prompts,
            .each_row = modules.each_row,
            .normalized = modules.each_row && modules.normalize,
            .layers = {}};
  int64_t width = rows.axes.back().size;
  for (const DenseModule& module : modules.dense) {
    if (module.inputs != width && module.inputs > 0) {
      throw ConfigError(module.path + "/config.json: in_features is " +
                        std::to_string(module.inputs) + ", but what comes before it gives " +
                        std::to_string(width));
    }
    const bool same_width = module.outputs == width;
    width = module.outputs;
    head.layers.push_back({.path = module.Tensors(),
                           .outputs = module.outputs,
                           .biased = module.biased,
                           .activation = DenseActivation(module.activation),
                           .skip = module.residual && same_width});
    if (module.residual && !same_width) head.layers.back().skip_path = module.path + ".residual";
  }
  return head;
}

}  // namespace linserve
