#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "core/sequence/truncation.h"

namespace linserve {

// Holds what a folder says of its tokenizer beside the tokenizer's own file.
struct TokenizerSettings {
  // Says whether transformers makes a BertTokenizer, or one that is built like it: it then takes
  // how texts are normalised from here, whatever the tokenizer's own file says.
  bool like_bert() const;

  nlohmann::json config = nlohmann::json::object();  // tokenizer_config.json
  std::string kind;  // its tokenizer_class without "Fast", or config.json's, or that of the
                     // model_type; "": none that is known
  std::optional<Truncation> truncation;  // what tokenizer_config.json says of long texts
  bool lowercase_first = false;          // sentence-transformers lowers texts before all else
};

// Reads the settings beside a file of a tokenizer: tokenizer_config.json, config.json and
// sentence_bert_config.json, as far as they are there. INVALID_ARGUMENT names what is wrong.
absl::StatusOr<TokenizerSettings> ReadTokenizerSettings(const std::string& path);

// Returns a BertNormalizer, in the form of tokenizer.json, as tokenizer_config.json asks for it.
absl::StatusOr<nlohmann::json> BertNormalizerOf(const nlohmann::json& config);

// Returns the normalizer with which transformers and sentence-transformers replace that of a
// tokenizer.json.
absl::StatusOr<nlohmann::json> NormalizerBy(const TokenizerSettings& settings,
                                            nlohmann::json normalizer);

}  // namespace linserve
