#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/strings/late_interaction.h"
#include "core/strings/static_settings.h"
#include "models/config/params.h"

namespace linserve {

// Says how the names in a checkpoint become the network's.
struct CheckpointNames {
  std::optional<std::string> prefix{};  // before those of the model; none: found by itself
  std::vector<std::string> ignore{};    // globs: names of tensors that are not the model's
  // A name that is absent from the file: the one that holds its tensor.
  std::map<std::string, std::string> aliases{};
  // What stands before names that no prefix goes with: those of modules with files of their own.
  std::vector<std::string> apart{};
  // What stands in names of another form than the network's, and what is to stand there. A tensor
  // is split, by its first axis, into as many as there are names.
  struct Renamed {
    std::string from;
    std::vector<std::string> to;
  };
  std::vector<Renamed> renamed{};
  // Says that tensors which are not the model's are left out: heads of other tasks lie beside it.
  bool others_are_left_out = false;
};

// Holds the config.json of a model directory: ours, in which comments are allowed and unknown keys
// are an error, or that of a Hugging Face folder.
struct ModelConfig {
  NetworkConfig network;
  nlohmann::json serving = nlohmann::json::object();  // ServingOptions, by name
  // Says that which tokens of long texts are dropped is the tokenizer's to say, if its files do.
  bool tokenizer_truncates = false;
  // What says how many tokens texts may have, as in "max_seq_length in sentence_bert_config.json";
  // empty: `serving` does.
  std::string text_limit_origin{};
  // Says how texts become the rows of a late-interaction model; nullopt: it is none.
  std::optional<LateInteraction> late_interaction{};
  // Says how texts become the tokens of a static model; nullopt: it is none.
  std::optional<StaticSettings> static_settings{};
  CheckpointNames names;
  std::vector<std::string> warnings{};  // of what in the folder has no effect
};

// Parses a config.json. INVALID_ARGUMENT says what is wrong with the text.
absl::StatusOr<ModelConfig> ParseModelConfig(const std::string& text);

// Reads DIRECTORY/config.json. NOT_FOUND says what a model directory must hold; INVALID_ARGUMENT
// names the file, the key and what was expected.
absl::StatusOr<ModelConfig> ReadModelConfig(const std::string& directory);

}  // namespace linserve
