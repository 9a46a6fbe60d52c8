#include "models/config/model_config.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "core/files/json_file.h"
#include "core/json/json_text.h"
#include "core/strings/quote.h"
#include "models/config/config_error.h"
#include "models/config/hugging_face_config.h"
#include "models/config/published_names.h"

namespace linserve {
namespace {

using nlohmann::json;

// Golden cases, which are model directories too, keep this for their bookkeeping.
constexpr std::array<std::string_view, 10> kIgnoredKeys = {
    "schema",         "seed",
    "note",           "package",
    "compare",        "ragged_mask",
    "tolerance",      "float32_noise",
    "unused_tensors", "tensors_not_in_package_state_dict"};

constexpr const char* kExamples = R"("prefix": "ema_model.", "ignore": ["loss.*"])";

const json& Object(const json& value, const std::string& key) {
  static const json kNone = json::object();
  if (value.is_null()) return kNone;
  if (!value.is_object()) throw ConfigError("\"" + key + "\" must be an object");
  return value;
}

// Reads a text that is set beside names of tensors, none of which is so long.
std::string NameText(const json& value, const std::string& key) {
  constexpr size_t kMostBytes = 1024;
  if (!value.is_string()) throw ConfigError("\"" + key + "\" must be a text, as in " + kExamples);
  std::string text = value.get<std::string>();
  if (text.size() <= kMostBytes) return text;
  throw ConfigError("\"" + key + "\" holds a text of " + std::to_string(text.size()) +
                    " bytes, expected at most " + std::to_string(kMostBytes));
}

std::vector<std::string> Globs(const json& value) {
  constexpr size_t kMost = 64;
  if (!value.is_array()) {
    throw ConfigError(std::string("\"ignore\" must be a list of texts, as in ") + kExamples);
  }
  if (value.size() > kMost) {
    throw ConfigError("\"ignore\" has " + std::to_string(value.size()) +
                      " entries, expected at most " + std::to_string(kMost));
  }
  std::vector<std::string> globs;
  for (const json& glob : value) globs.push_back(NameText(glob, "ignore"));
  return globs;
}

void Assign(ModelConfig& config, const std::string& key, const json& value) {
  if (key == "architecture") {
    if (!value.is_string()) throw ConfigError("\"architecture\" must be a text");
    config.network.architecture = value.get<std::string>();
  } else if (key == "params") {
    config.network.params = Object(value, key);
  } else if (key == "serving") {
    config.serving = Object(value, key);
  } else if (key == "call") {
    config.network.call = Object(value, key);
  } else if (key == "wrapper") {
    config.network.wrapper = value;
  } else if (key == "aliases") {
    for (const auto& [alias, target] : Object(value, key).items()) {
      if (!target.is_string()) throw ConfigError("\"aliases\" must map names to names");
      config.names.aliases[alias] = target.get<std::string>();
    }
  } else if (key == "prefix") {
    config.names.prefix = NameText(value, key);
  } else if (key == "ignore") {
    config.names.ignore = Globs(value);
  } else if (std::find(kIgnoredKeys.begin(), kIgnoredKeys.end(), key) == kIgnoredKeys.end()) {
    throw ConfigError("unknown key " + Quoted(key) +
                      "; a model's config.json has architecture, params, serving, wrapper, call, "
                      "prefix, ignore and aliases");
  }
}

// Says whether the config.json, which is null where there is none, is not linserve's own.
bool IsForeign(const json& document, const std::string& directory) {
  if (IsHuggingFaceConfig(document)) return true;
  const bool own = document.is_object() && document.contains("architecture");
  return !own && IsStaticFolder(document, directory);
}

// `directory` is where the other files of a Hugging Face folder lie. What is wrong with one, of
// which `foreign` tells, begins with the name of the file in it.
absl::StatusOr<ModelConfig> ConfigOf(const json& document, const std::string& directory,
                                     bool& foreign) {
  foreign = true;
  try {
    ModelConfig config;
    foreign = IsForeign(document, directory);
    if (foreign) {
      config = HuggingFaceConfig(document, directory);
    } else if (document.is_null()) {
      ReadSentenceModules(directory, /*prompted=*/false);  // one may be what is not computed
      throw ConfigError("config.json is not there: download the whole folder");
    } else if (!document.is_object()) {
      throw ConfigError("expected a JSON object");
    } else {
      for (const auto& [key, value] : document.items()) Assign(config, key, value);
      config.static_settings = StaticSettingsOf(config.network.architecture);
    }
    if (config.network.architecture.empty())
      throw ConfigError(
          "\"architecture\" is missing (or \"model_type\", as in Hugging Face folders)");
    config.names.renamed = PublishedNames(config.network.architecture);
    return config;
  } catch (const std::exception& error) {  // ConfigError, or the JSON library's
    return absl::InvalidArgumentError(JsonFault(error));
  }
}

}  // namespace

absl::StatusOr<ModelConfig> ParseModelConfig(const std::string& text) {
  const auto document = ParseJson(text);
  if (!document.ok()) return document.status();
  bool foreign = false;
  return ConfigOf(*document, ".", foreign);
}

absl::StatusOr<ModelConfig> ReadModelConfig(const std::string& directory) {
  const std::string path = directory + "/config.json";
  const auto document = ReadJson(path);
  const bool missing = absl::IsNotFound(document.status());
  if (missing) {
    if (std::filesystem::exists(directory + "/0_Transformer/config.json")) {
      return absl::NotFoundError("the model's files are in " + directory +
                                 "/0_Transformer, as they were with old versions of "
                                 "sentence-transformers: move them beside modules.json, and make "
                                 "the path of its first module \"\"");
    }
    if (!std::filesystem::exists(directory + "/modules.json")) {
      return absl::NotFoundError("no model at " + directory +
                                 ", for there is no config.json: a model directory holds it and "
                                 "model.safetensors; `linserve init --help` tells how to make one");
    }
  } else if (!document.ok()) {
    return document.status();
  }
  bool foreign = false;
  auto config = ConfigOf(missing ? json() : *document, directory, foreign);
  if (config.ok()) return config;
  const std::string place = foreign || missing ? directory + "/" : path + ": ";
  return absl::InvalidArgumentError(place + std::string(config.status().message()));
}

}  // namespace linserve
