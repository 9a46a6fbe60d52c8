#include "models/config/lm_head_folder.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "core/json/json_text.h"
#include "core/strings/quote.h"
#include "models/config/config_error.h"
#include "models/config/folder_file.h"

namespace linserve {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 5> kMaskedLms = {
    "transformers.BertForMaskedLM", "transformers.RobertaForMaskedLM",
    "transformers.XLMRobertaForMaskedLM", "transformers.DistilBertForMaskedLM",
    "transformers.ModernBertForMaskedLM"};

constexpr std::array<std::string_view, 13> kCausalLms = {
    "transformers.LlamaForCausalLM",   "transformers.MistralForCausalLM",
    "transformers.Qwen2ForCausalLM",   "transformers.Qwen3ForCausalLM",
    "transformers.GemmaForCausalLM",   "transformers.Gemma2ForCausalLM",
    "transformers.Gemma3ForCausalLM",  "transformers.Phi3ForCausalLM",
    "transformers.GraniteForCausalLM", "transformers.SmolLM3ForCausalLM",
    "transformers.Olmo2ForCausalLM",   "transformers.MinistralForCausalLM",
    "transformers.Lfm2ForCausalLM"};

// Takes the option out; false if it is not there or says something else.
bool TakeOption(json& serving) {
  const auto pooling = serving.find("pooling");
  if (pooling == serving.end() || *pooling != "splade") return false;
  serving.erase(pooling);
  return true;
}

// Returns the one of these classes that is what an encoder's is with another end. `what` is made of
// them.
template <typename Classes>
std::string LanguageModelOf(const std::string& encoder, std::string_view end,
                            const Classes& classes, const std::string& what) {
  const std::string name = encoder.substr(0, encoder.rfind("Model")).append(end);
  if (std::find(classes.begin(), classes.end(), name) != classes.end()) return name;
  std::string known;
  for (const std::string_view one : classes)
    known += (known.empty() ? "" : ", ") + std::string(one);
  throw ConfigError(what + " not made of " + encoder + "; of these they are: " + known);
}

json TaskOf(const json& transformer) {
  return transformer.is_object() ? transformer.value("transformer_task", json()) : json();
}

// Says whether the folder has a chat template, in which sentence-transformers writes pairs.
bool HasChatTemplate(const std::string& directory) {
  if (FolderHas(directory, "chat_template.jinja")) return true;
  const json settings = FolderFile(directory, "tokenizer_config.json");
  return settings.is_object() && !settings.value("chat_template", json()).is_null();
}

// Takes the tokens out that the options name, over those that the folder's module has.
void TakeAnswers(json& serving, SentenceModules& sentence) {
  for (const char* key : {kTrueToken, kFalseToken}) {
    const auto token = serving.find(key);
    if (token == serving.end()) continue;
    if (!token->is_number_integer()) {
      throw ConfigError("config.json: " + Quoted(key) + " is " + JsonText(*token) +
                        ", expected a token's id");
    }
    if (!sentence.answers) sentence.answers.emplace();
    (*sentence.answers)[key] = *token;
    serving.erase(token);
  }
}

}  // namespace

void ReadAnswers(const json& transformer, const std::string& directory, json& serving,
                 ModelConfig& config) {
  SentenceModules& sentence = config.network.sentence;
  TakeAnswers(serving, sentence);
  const bool generates = TaskOf(transformer) == "text-generation";
  if (generates && !sentence.answers) {
    throw ConfigError(
        "transformer_task is \"text-generation\", of whose logits LogitScore alone makes a score");
  }
  if (!sentence.answers) return;
  if (!sentence.dense.empty() || sentence.normalize || sentence.splade) {
    throw ConfigError("modules.json has modules behind the one that scores answers");
  }
  if (HasChatTemplate(directory) && !serving.contains("pair_template")) {
    throw ConfigError(
        "the folder has a chat template, in which a re-ranker's pairs are written and which is not "
        "run here; write it into \"serving\" of config.json as \"pair_template\": the whole text, "
        "with {query}, {document} and, if it has an instruction, {prompt}");
  }
  config.network.architecture = LanguageModelOf(config.network.architecture, "ForCausalLM",
                                                kCausalLms, "scores of answers are");
  config.network.params.update(*sentence.answers);
}

void ReadSparseEncoder(const json& transformer, json& serving, ModelConfig& config) {
  SentenceModules& sentence = config.network.sentence;
  const json task = TaskOf(transformer);
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
  config.network.architecture = LanguageModelOf(config.network.architecture, "ForMaskedLM",
                                                kMaskedLms, "sparse embeddings are");
  config.network.params["pooling_strategy"] = sentence.splade->strategy;
  config.network.params["activation_function"] = sentence.splade->activation;
}

}  // namespace linserve
