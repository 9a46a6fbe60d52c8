#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "core/tensor/tensor.h"
#include "models/config/model_config.h"

namespace linserve {

// Names the member of the network's params that says how many tokens of a text
// sentence-transformers keeps, if its own file does: it is called so there.
inline constexpr const char* kTextsUpTo = "max_seq_length";
// Names the one that says it where that is silent: the tokenizer's limit, as its file calls it.
inline constexpr const char* kTokensUpTo = "model_max_length";

// Reads how long a sequence may be where positions have no table that ends: as `key` has it or,
// where sentence-transformers' own file cuts texts later, as that has it.
int64_t LongestWithoutTable(Params& params, const char* key, int64_t fallback);

// Says whether a config.json is that of a Hugging Face folder: it has a model_type, and no
// architecture of ours.
bool IsHuggingFaceConfig(const nlohmann::json& document);

// Returns what such a folder says of its model: the network by model_type, which is a classifier
// where `architectures` names one and modules.json makes no encoder of it; and how it is served by
// "serving" in its config.json, as in ours, and where that is silent by the files that
// sentence-transformers puts beside it (modules.json, its modules' config.json,
// sentence_bert_config.json, config_sentence_transformers.json), if they are there. Throws
// ConfigError for a kind of model or module that is not computed here, naming it and the file.
ModelConfig HuggingFaceConfig(const nlohmann::json& document, const std::string& directory);

// Returns how texts of an architecture are read whose config.json is linserve's own; nullopt: as
// those of models that are not static.
std::optional<StaticSettings> StaticSettingsOf(const std::string& architecture);

// Says whether the folder is that of a static model, whose vectors are means of a table's rows: a
// StaticModel of model2vec, whose config.json is `document`, or a StaticEmbedding of
// sentence-transformers, whose folder need not have that file.
bool IsStaticFolder(const nlohmann::json& document, const std::string& directory);

// Reads how such a folder's texts become vectors. Texts are read as model2vec 0.10.0 reads them if
// the folder is its own, and else as sentence-transformers 6.2.0 does; the option `texts_as` in
// `serving`, what config.json has in "serving", names the one or the other, and is taken out.
// Throws ConfigError for what is not computed here.
void ReadStaticFolder(const nlohmann::json& document, const std::string& directory,
                      nlohmann::json& serving, ModelConfig& config);

// Says what kind of table it is, and how large, by the shapes of the tensors in its file. Throws
// ConfigError if there is no table among them.
void ReadStaticTable(const std::map<std::string, Shape>& shapes, ModelConfig& config);

}  // namespace linserve
