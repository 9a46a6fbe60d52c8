#include "models/model_config.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <string_view>

#include "models/config_error.h"

namespace linserve {
namespace {

using nlohmann::json;

// Bookkeeping of golden cases, which are model directories too.
constexpr std::array<std::string_view, 10> kIgnoredKeys = {
    "schema",         "seed",
    "note",           "package",
    "compare",        "ragged_mask",
    "tolerance",      "float32_noise",
    "unused_tensors", "tensors_not_in_package_state_dict"};

const json& Object(const json& value, const std::string& key) {
  static const json kNone = json::object();
  if (value.is_null()) return kNone;
  if (!value.is_object()) throw ConfigError("\"" + key + "\" must be an object");
  return value;
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
      config.aliases[alias] = target.get<std::string>();
    }
  } else if (std::find(kIgnoredKeys.begin(), kIgnoredKeys.end(), key) == kIgnoredKeys.end()) {
    throw ConfigError("unknown key \"" + key +
                      "\"; a model's config.json has architecture, params, serving, wrapper, call "
                      "and aliases");
  }
}

ModelConfig ParseDocument(const std::string& text) {
  const json document = json::parse(text, nullptr, /*allow_exceptions=*/true,
                                    /*ignore_comments=*/true);
  if (!document.is_object()) throw ConfigError("expected a JSON object");
  ModelConfig config;
  for (const auto& [key, value] : document.items()) Assign(config, key, value);
  if (config.network.architecture.empty()) throw ConfigError("\"architecture\" is missing");
  return config;
}

}  // namespace

absl::StatusOr<ModelConfig> ParseModelConfig(const std::string& text) {
  try {
    return ParseDocument(text);
  } catch (const std::exception& error) {  // ConfigError, or the JSON parser's
    return absl::InvalidArgumentError(error.what());
  }
}

absl::StatusOr<ModelConfig> ReadModelConfig(const std::string& directory) {
  const std::string path = directory + "/config.json";
  std::ifstream file(path);
  if (!file) {
    return absl::NotFoundError("no model at " + directory +
                               ": a model directory holds config.json and model.safetensors; "
                               "`linserve init --help` tells how to make one");
  }
  std::ostringstream text;
  text << file.rdbuf();
  auto config = ParseModelConfig(text.str());
  if (config.ok()) return config;
  return absl::InvalidArgumentError(path + ": " + std::string(config.status().message()));
}

}  // namespace linserve
