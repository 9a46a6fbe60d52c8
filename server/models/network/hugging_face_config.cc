#include "models/network/hugging_face_config.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/files/json_file.h"
#include "core/status/quote.h"
#include "models/network/config_error.h"

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
};

// Is a way of pooling in the names of sentence-transformers: that of versions up to 5, which are
// flags, and that of later ones.
struct PoolingMode {
  const char* flag;
  std::string_view name;
  const char* pooling;  // nullptr: it is not computed here
};

constexpr std::array kPoolingModes = {
    PoolingMode{"pooling_mode_cls_token", "cls", "cls"},
    PoolingMode{"pooling_mode_mean_tokens", "mean", "mean"},
    PoolingMode{"pooling_mode_max_tokens", "max", "max"},
    PoolingMode{"pooling_mode_lasttoken", "lasttoken", "last"},
    PoolingMode{"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens", nullptr},
    PoolingMode{"pooling_mode_weightedmean_tokens", "weightedmean", nullptr},
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

const char* PoolingOf(const json& config, const std::string& file) {
  std::vector<const PoolingMode*> modes;
  for (const PoolingMode& mode : kPoolingModes) {
    const bool flagged = config.value(mode.flag, json(false)) == true;
    if (flagged || config.value("pooling_mode", json()) == mode.name) modes.push_back(&mode);
  }
  if (modes.size() == 1 && modes[0]->pooling != nullptr) return modes[0]->pooling;
  std::string names;
  for (const PoolingMode* mode : modes)
    names += (names.empty() ? "" : " and ") + std::string(mode->name);
  throw ConfigError(file + " pools by " + (names.empty() ? "nothing that is known" : names) +
                    ", expected one of cls, mean, max and lasttoken");
}

// Returns the last word of a module's type, such as "Pooling".
std::string KindOf(const json& module) {
  const std::string type = module.is_object() ? module.value("type", std::string()) : std::string();
  return type.substr(type.rfind('.') + 1);
}

// Reads modules.json, which lists the steps from tokens to a sentence's vector.
void ReadModules(const json& modules, const std::string& directory, json& serving) {
  constexpr size_t kMostModules = 16;
  if (!modules.is_array() || modules.size() > kMostModules) {
    throw ConfigError("modules.json: expected a list of at most " + std::to_string(kMostModules) +
                      " modules");
  }
  for (const json& module : modules) {
    const std::string kind = KindOf(module);
    if (kind == "Transformer") continue;
    if (kind == "Normalize") {
      serving["normalize"] = true;
    } else if (kind == "Pooling") {
      const std::string file = module.value("path", std::string()) + "/config.json";
      if (file.find("..") != std::string::npos) {
        throw ConfigError("modules.json: " + Quoted(file) + " is not below the folder");
      }
      const json config = Beside(directory, file);
      if (!config.is_object()) {
        throw ConfigError("modules.json names " + Quoted(file) + ", which is no object of JSON");
      }
      serving["pooling"] = PoolingOf(config, file);
    } else {
      throw ConfigError("modules.json: a module of type " + Quoted(kind) +
                        " is not computed; those that are: Transformer, Pooling, Normalize");
    }
  }
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

json ServingOf(const std::string& directory) {
  // sentence-transformers pools by the mean where nothing is said, and drops a text's last tokens.
  json serving = {{"pooling", "mean"}, {"truncation", "right"}};
  if (const json modules = Beside(directory, "modules.json"); !modules.is_null()) {
    ReadModules(modules, directory, serving);
  }
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
  config.serving = ServingOf(directory);
  return config;
}

}  // namespace linserve
