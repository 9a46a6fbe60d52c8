#include "models/config/hugging_face_config.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/files/json_file.h"
#include "core/files/sentence_files.h"
#include "core/json/json_text.h"
#include "core/strings/quote.h"
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
    ModelType{"new", "transformers.GteModel"},
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

// Returns the member of an object; null if it is no object or has none of this name.
json MemberOf(const json& object, const char* key) {
  return object.is_object() ? object.value(key, json()) : json();
}

// Returns the limit that a file tells; nullopt where it tells none, for which some write 10^30.
std::optional<int64_t> LimitOf(const json& tokens) {
  constexpr double kNone = 1 << 30;
  if (!tokens.is_number() || tokens.get<double>() < 1 || tokens.get<double>() >= kNone) {
    return std::nullopt;
  }
  return static_cast<int64_t>(tokens.get<double>());
}

// Refuses members that change what another file says, while that is read, but for `followed`.
void RefuseChanges(const json& settings, const std::string& name,
                   const std::vector<const char*>& members, const char* file,
                   const char* followed = "") {
  for (const char* key : members) {
    json changes = MemberOf(settings, key);
    if (changes.is_object()) {
      changes.erase("trust_remote_code");
      changes.erase(followed);
    }
    if (changes.empty()) continue;
    throw ConfigError(name + ": " + Quoted(key) + " changes " + file +
                      " while it is read, which is not done here; write into " + file +
                      " what it says");
  }
}

// Reads the settings of sentence-transformers' Transformer; null if there are none.
json TransformerSettings(const std::string& directory) {
  for (const std::string name : kTransformerSettings) {
    const json settings = Beside(directory, name);
    if (!settings.is_object() || settings.empty()) continue;
    RefuseChanges(settings, name, {"config_args", "config_kwargs"}, "config.json");
    RefuseChanges(settings, name, {"tokenizer_args", "processor_kwargs", "processing_kwargs"},
                  "tokenizer_config.json", "model_max_length");
    return settings;
  }
  return nullptr;
}

// Returns how many tokens of a text sentence-transformers keeps by its own file; nullopt if that
// says nothing.
std::optional<int64_t> MostTokensOfTexts(const std::string& directory) {
  const json settings = TransformerSettings(directory);
  for (const auto& limit :
       {LimitOf(MemberOf(MemberOf(settings, "processor_kwargs"), "model_max_length")),
        LimitOf(MemberOf(MemberOf(settings, "tokenizer_args"), "model_max_length")),
        LimitOf(MemberOf(settings, kTextsUpTo))}) {
    if (limit) return limit;
  }
  return std::nullopt;
}

// Returns how many tokens of a text its tokenizer keeps where nothing else is said.
std::optional<int64_t> MostTokensOfTokenizer(const std::string& directory) {
  const json tokenizer = Beside(directory, "tokenizer_config.json");
  const auto limit = LimitOf(MemberOf(tokenizer, "model_max_length"));
  return limit ? limit : LimitOf(MemberOf(tokenizer, "max_len"));
}

// Adds the prompts that requests may name, and the one for those that name none.
void AddPrompts(const std::string& directory, json& serving) {
  constexpr const char* kFile = "config_sentence_transformers.json";
  const json sentences = Beside(directory, kFile);
  if (const json cut = MemberOf(sentences, "truncate_dim"); !cut.is_null()) {
    throw ConfigError(std::string(kFile) + ": truncate_dim " + JsonText(cut) +
                      " cuts every vector, which is not done here; remove it, and have requests "
                      "ask for `dimensions`, which the option \"dimensions\" allows");
  }
  json prompts = MemberOf(sentences, "prompts");
  if (!prompts.is_object()) prompts = json::object();
  json texts = json::object();
  for (const auto& [name, prompt] : prompts.items()) {
    if (prompt.is_null()) continue;  // no text stands before texts
    if (!prompt.is_string()) {
      throw ConfigError(std::string(kFile) + ": the prompt " + Quoted(name) + " is no text");
    }
    texts[name] = prompt;
  }
  if (!texts.empty()) serving["prompts"] = texts;
  const json usual = MemberOf(sentences, "default_prompt_name");
  if (usual.is_null()) return;
  if (!usual.is_string() || !prompts.contains(usual.get<std::string>())) {
    throw ConfigError(std::string(kFile) + ": default_prompt_name is " + JsonText(usual) +
                      ", expected a name in its prompts");
  }
  if (texts.contains(usual.get<std::string>())) serving["default_prompt"] = usual;
}

json ServingOf(const SentenceModules& sentence, std::optional<int64_t> most_tokens,
               const std::string& directory) {
  // Which tokens are dropped the tokenizer's files may say; the last ones, if they do not.
  json serving = {{"pooling", Name(sentence.pooling)}, {"truncation", "right"}};
  if (sentence.normalize) serving["normalize"] = true;
  if (!most_tokens) most_tokens = MostTokensOfTokenizer(directory);
  if (most_tokens) serving["max_text_tokens"] = *most_tokens;
  AddPrompts(directory, serving);
  return serving;
}

void RefuseAdapter(const std::string& directory) {
  constexpr const char* kFile = "adapter_config.json";
  if (Beside(directory, kFile).is_null()) return;
  throw ConfigError(std::string("the folder is an adapter (") + kFile +
                    "), which is not added to weights here; save the model with it merged: "
                    "PeftModel.merge_and_unload() and save_pretrained()");
}

}  // namespace

bool IsHuggingFaceConfig(const json& document) {
  return document.is_object() && document.contains("model_type") &&
         !document.contains("architecture");
}

ModelConfig HuggingFaceConfig(const json& document, const std::string& directory) {
  RefuseAdapter(directory);
  ModelConfig config;
  config.network.architecture = ArchitectureOf(document["model_type"]);
  config.network.params = document;
  config.network.foreign = true;
  config.names.others_are_left_out = true;
  config.network.sentence = ReadSentenceModules(directory);
  for (const DenseModule& dense : config.network.sentence.dense) {
    config.names.apart.push_back(dense.path + ".");
  }
  const auto most_tokens = MostTokensOfTexts(directory);
  config.network.params.erase(kTextsUpTo);
  if (most_tokens) config.network.params[kTextsUpTo] = *most_tokens;
  config.serving = ServingOf(config.network.sentence, most_tokens, directory);
  return config;
}

}  // namespace linserve
