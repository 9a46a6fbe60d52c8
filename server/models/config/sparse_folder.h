#pragma once

#include <nlohmann/json.hpp>

#include "models/config/model_config.h"

namespace linserve {

// Makes the encoder of a Hugging Face folder a sparse one, where its modules have a SpladePooling,
// or the option `pooling` in what its config.json has in "serving" is splade, as
// text-embeddings-inference calls it: the largest log(1 + relu(logit)), which is what
// sentence-transformers takes a folder without modules for. The option is taken out. `transformer`
// is what sentence-transformers says of its Transformer, an object or null. Throws ConfigError for
// an encoder of which no masked language model is computed here, and where the files contradict
// each other.
void ReadSparseEncoder(const nlohmann::json& transformer, nlohmann::json& serving,
                       ModelConfig& config);

}  // namespace linserve
