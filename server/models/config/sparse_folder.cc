#include "models/config/sparse_folder.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "core/json/json_text.h"
#include "models/config/config_error.h"

namespace linserve {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 5> kMaskedLms = {
    "transformers.BertForMaskedLM", "transformers.RobertaForMaskedLM",
    "transformers.XLMRobertaForMaskedLM", "transformers.DistilBertForMaskedLM",
    "transformers.ModernBertForMaskedLM"};

// Takes the option out; false if it is not there or says something else.
bool TakeOption(json& serving) {
  const auto pooling = serving.find("pooling");
  if (pooling == serving.end() || *pooling != "splade") return false;
  serving.erase(pooling);
  return true;
}

// Returns the class with a masked language model's head for that of an encoder.
std::string MaskedLmOf(const std::string& encoder) {
  constexpr std::string_view kModel = "Model";
  const std::string stem =
      encoder.ends_with(kModel) ? encoder.substr(0, encoder.size() - kModel.size()) : encoder;
  const std::string name = stem + "ForMaskedLM";
  if (std::find(kMaskedLms.begin(), kMaskedLms.end(), name) != kMaskedLms.end()) return name;
  std::string known;
  for (const std::string_view one : kMaskedLms)
    known += (known.empty() ? "" : ", ") + std::string(one);
  throw ConfigError("sparse embeddings are not made of " + encoder +
                    "; of these they are: " + known);
}

}  // namespace

void ReadSparseEncoder(const json& transformer, json& serving, ModelConfig& config) {
  SentenceModules& sentence = config.network.sentence;
  const json task =
      transformer.is_object() ? transformer.value("transformer_task", json()) : json();
  const bool asked = TakeOption(serving);
  const bool of_logits = task == "fill-mask";
  if (of_logits && !sentence.splade && !asked) {
    throw ConfigError(
        "transformer_task is \"fill-mask\", whose logits are pooled by SpladePooling alone");
  }
  if (sentence.splade && !task.is_null() && !of_logits) {
    throw ConfigError("modules.json has a SpladePooling, but transformer_task is " +
                      JsonText(task) + ", expected \"fill-mask\"");
  }
  if (asked && (!sentence.dense.empty() || sentence.normalize)) {
    throw ConfigError(
        "config.json: \"pooling\" is \"splade\", but modules.json has modules behind the pooling");
  }
  if (asked && !sentence.splade) sentence.splade = {.strategy = "max", .activation = "relu"};
  if (!sentence.splade) return;
  config.network.architecture = MaskedLmOf(config.network.architecture);
  config.network.params["pooling_strategy"] = sentence.splade->strategy;
  config.network.params["activation_function"] = sentence.splade->activation;
}

}  // namespace linserve
