#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "models/config/model_config.h"

namespace linserve {

// Says whether the folder is that of a late-interaction model, whose config.json is `document`: a
// MultiVectorEncoder of sentence-transformers, a ColBERT of PyLate, or one of Stanford's code.
bool IsLateInteraction(const nlohmann::json& document, const std::string& directory);

// Reads how such a model's rows are made and which of a text's it gives, and adds the prompts of
// queries and documents, as MultiVectorEncoder of sentence-transformers 6.2.0 does. `transformer`
// holds the settings of its Transformer. Throws ConfigError for what is not computed here.
void ReadLateInteraction(const nlohmann::json& document, const nlohmann::json& transformer,
                         const std::string& directory, ModelConfig& config);

}  // namespace linserve
