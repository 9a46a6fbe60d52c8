#pragma once

#include <nlohmann/json.hpp>
#include <string>

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

// Makes the model of a Hugging Face folder a re-ranker that answers by words, where its modules
// have a LogitScore, or the options true_token_id and false_token_id name the tokens of the words.
// They are taken out. Throws ConfigError for a model of which no causal language model is computed
// here, where the files contradict each other, and where a chat template says how pairs are written
// but no option pair_template does.
void ReadAnswers(const nlohmann::json& transformer, const std::string& directory,
                 nlohmann::json& serving, ModelConfig& config);

}  // namespace linserve
