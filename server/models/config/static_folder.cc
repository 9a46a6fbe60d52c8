#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "core/json/json_text.h"
#include "core/strings/quote.h"
#include "models/config/config_error.h"
#include "models/config/folder_file.h"
#include "models/config/hugging_face_config.h"
#include "models/config/params.h"

namespace linserve {
namespace {

using nlohmann::json;

constexpr const char* kStaticEmbedding = "sentence_transformers.StaticEmbedding";
constexpr const char* kStaticModel = "model2vec.StaticModel";
constexpr const char* kTextsAs = "texts_as";
constexpr const char* kModel2Vec = "model2vec";
constexpr const char* kSentenceTransformers = "sentence-transformers";

bool IsModel2Vec(const json& document) {
  return document.is_object() && document.value("model_type", json()) == kModel2Vec;
}

// Takes out the option that says whose texts these are.
bool TakeTextsAs(const json& document, json& serving) {
  const auto option = serving.find(kTextsAs);
  if (option == serving.end()) return IsModel2Vec(document);
  const json named = std::exchange(*option, nullptr);
  serving.erase(option);
  if (named == kModel2Vec || named == kSentenceTransformers) return named == kModel2Vec;
  throw ConfigError("config.json: " + Quoted(kTextsAs) + " is " + JsonText(named) +
                    ", expected \"model2vec\" or \"sentence-transformers\"");
}

// Returns how many tokens of a text model2vec keeps; 0: all.
int64_t LongestOfModel2Vec(const json& document) {
  constexpr int64_t kUsual = 512;
  Params params(document, "config.json");
  if (params.IsNone("max_length")) return 0;
  return params.Positive("max_length", kUsual);
}

// Reads what model2vec does with a folder's texts, in whose vectors it has no other modules.
void ReadModel2Vec(const json& document, const json& serving, ModelConfig& config) {
  SentenceModules& sentence = config.network.sentence;
  if (!sentence.dense.empty()) {
    throw ConfigError(
        "modules.json has a Dense module, which model2vec does not compute; \"texts_as\": "
        "\"sentence-transformers\" in \"serving\" of config.json has all of them");
  }
  sentence.normalize = Params(document, "config.json").Flag("normalize", false);
  const int64_t longest = LongestOfModel2Vec(document);
  if (longest == 0 || serving.contains("max_text_tokens")) return;
  config.serving["max_text_tokens"] = longest;
  config.text_limit_origin =
      document.contains("max_length") ? "max_length in config.json" : "model2vec";
}

// Returns a tensor's two sizes.
std::pair<int64_t, int64_t> SizesOf(const std::string& name, const Shape& shape) {
  if (shape.size() == 2) return {shape[0], shape[1]};
  throw ConfigError("the tensor " + name + " is " + ToString(shape) + ", expected [tokens, width]");
}

}  // namespace

std::optional<StaticSettings> StaticSettingsOf(const std::string& architecture) {
  const bool of_model2vec = architecture == kStaticModel;
  if (!of_model2vec && architecture != kStaticEmbedding) return std::nullopt;
  return StaticSettings{.as_model2vec = of_model2vec};
}

bool IsStaticFolder(const json& document, const std::string& directory) {
  if (IsModel2Vec(document)) return true;
  const json modules = FolderFile(directory, "modules.json");
  if (!modules.is_array() || modules.empty() || !modules[0].is_object()) return false;
  const json type = modules[0].value("type", json());
  return type.is_string() && type.get_ref<const std::string&>().ends_with(".StaticEmbedding");
}

void ReadStaticFolder(const json& document, const std::string& directory, json& serving,
                      ModelConfig& config) {
  SentenceModules& sentence = config.network.sentence;
  sentence = ReadSentenceModules(directory, /*prompted=*/false);
  const bool as_model2vec = TakeTextsAs(document, serving);
  if (!sentence.table && (!as_model2vec || FolderHas(directory, "modules.json"))) {
    throw ConfigError(
        "modules.json does not begin with a StaticEmbedding, as which sentence-transformers knows "
        "a model of model2vec");
  }
  if (!sentence.table) sentence.table = "";
  config.static_settings = {.tokenizer = *sentence.table, .as_model2vec = as_model2vec};
  if (as_model2vec) {
    ReadModel2Vec(document.is_object() ? document : json::object(), serving, config);
  }
  config.network.architecture = kStaticEmbedding;
}

void ReadStaticTable(const std::map<std::string, Shape>& shapes, ModelConfig& config) {
  json& params = config.network.params;
  params = json::object();
  if (const auto table = shapes.find("embedding.weight"); table != shapes.end()) {
    std::tie(params["num_embeddings"], params["embedding_dim"]) =
        SizesOf("embedding.weight", table->second);
    return;
  }
  const auto table = shapes.find("embeddings");
  if (table == shapes.end()) {
    throw ConfigError(
        "model.safetensors has no table of a static model: neither embedding.weight, as "
        "sentence-transformers calls it, nor embeddings, as model2vec does");
  }
  config.network.architecture = kStaticModel;
  const auto [rows, width] = SizesOf("embeddings", table->second);
  params = {{"vocab_size", rows}, {"hidden_dim", width}, {"weighted", shapes.contains("weights")}};
  const auto mapping = shapes.find("mapping");
  if (mapping == shapes.end()) return;
  params["vocabulary_quantization"] = rows;
  params["vocab_size"] = ElementCount(mapping->second);
}

}  // namespace linserve
