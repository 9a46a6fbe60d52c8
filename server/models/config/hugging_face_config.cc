#include "models/config/hugging_face_config.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/files/json_file.h"
#include "core/status/quote.h"
#include "models/config/config_error.h"
#include "models/config/sentence_modules.h"

namespace linserve {
namespace {

using nlohmann::json;

struct ModelType {
  std::string_view name;
  const char* architecture;
};

constexpr std::array kModelTypes = {
    ModelType{"bert", "transformers.BertModel"},
    ModelType{"roberta", "transformers.RobertaModel"},
    ModelType{"camembert", "transformers.RobertaModel"},
    ModelType{"xlm-roberta", "transformers.XLMRobertaModel"},
    ModelType{"distilbert", "transformers.DistilBertModel"},
    ModelType{"mpnet", "transformers.MPNetModel"},
    ModelType{"modernbert", "transformers.ModernBertModel"},
    ModelType{"nystromformer", "transformers.NystromformerModel"},
    ModelType{"nomic_bert", "transformers.NomicBertModel"},
    ModelType{"gte", "transformers.GteModel"},
    ModelType{"molformer", "molformer.MolformerModel"},
};

std::string ArchitectureOf(const json& model_type) {
  std::string known;
  for (const ModelType& type : kModelTypes) {
    if (model_type == type.name) return type.architecture;
    known += (known.empty() ? "" : ", ") + std::string(type.name);
  }
  throw ConfigError(
      "model_type " +
      Quoted(model_type.is_string() ? model_type.get<std::string>() : model_type.dump()) +
      " is not served; those of Hugging Face folders that are: " + known);
}

// Reads a file of JSON beside the model; null if there is none.
json Beside(const std::string& directory, const std::string& name) {
  const auto document = ReadJson(directory + "/" + name);
  if (absl::IsNotFound(document.status())) return nullptr;
  if (!document.ok()) throw ConfigError(std::string(document.status().message()));
  return *document;
}

// Returns how many tokens of a text sentence-transformers keeps: what its own file says, or else
// the tokenizer's. Where there is no limit the latter is 10^30.
std::optional<int64_t> MostTokensOfTexts(const std::string& directory) {
  constexpr double kNone = 1 << 30;
  for (const auto& [file, key] : {std::pair{"sentence_bert_config.json", "max_seq_length"},
                                  {"tokenizer_config.json", "model_max_length"}}) {
    const json document = Beside(directory, file);
    const json most = document.is_object() ? document.value(key, json()) : json();
    if (!most.is_number()) continue;
    const double tokens = most.get<double>();
    if (tokens >= 1 && tokens < kNone) return static_cast<int64_t>(tokens);
  }
  return std::nullopt;
}

json ServingOf(const SentenceModules& sentence, const std::string& directory) {
  // sentence-transformers drops a text's last tokens.
  json serving = {{"pooling", Name(sentence.pooling)}, {"truncation", "right"}};
  if (sentence.normalize) serving["normalize"] = true;
  if (const auto tokens = MostTokensOfTexts(directory)) serving["max_text_tokens"] = *tokens;
  const json sentences = Beside(directory, "config_sentence_transformers.json");
  if (sentences.is_object() && sentences.contains("prompts") && sentences["prompts"].is_object()) {
    serving["prompts"] = sentences["prompts"];
  }
  return serving;
}

}  // namespace

bool IsHuggingFaceConfig(const json& document) {
  return document.is_object() && document.contains("model_type") &&
         !document.contains("architecture");
}

ModelConfig HuggingFaceConfig(const json& document, const std::string& directory) {
  ModelConfig config;
  config.network.architecture = ArchitectureOf(document["model_type"]);
  config.network.params = document;
  config.network.foreign = true;
  config.names.others_are_left_out = true;
  config.network.sentence = ReadSentenceModules(directory);
  for (const DenseModule& dense : config.network.sentence.dense) {
    config.names.apart.push_back(dense.path + ".");
  }
  config.serving = ServingOf(config.network.sentence, directory);
  return config;
}

}  // namespace linserve
