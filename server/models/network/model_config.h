#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "models/network/params.h"

namespace linserve {

// Holds the config.json of a model directory. Comments are allowed; unknown keys are an error.
struct ModelConfig {
  NetworkConfig network;
  nlohmann::json serving = nlohmann::json::object();  // ServingOptions, by name
  std::map<std::string, std::string> aliases;  // a name absent from the file: the one that holds it
};

// Parses a config.json. INVALID_ARGUMENT says what is wrong with the text.
absl::StatusOr<ModelConfig> ParseModelConfig(const std::string& text);

// Reads DIRECTORY/config.json. NOT_FOUND says what a model directory must hold; INVALID_ARGUMENT
// names the file, the key and what was expected.
absl::StatusOr<ModelConfig> ReadModelConfig(const std::string& directory);

}  // namespace linserve
