#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/sequence/truncation.h"
#include "text/huggingface/settings/tokenizer_class.h"

namespace linserve {

// Holds what a folder says of its tokenizer beside the tokenizer's own file.
struct TokenizerSettings {
  // Returns a mark, such as "cls_token", as the files name it, or as its class has it: a text, or
  // an object with a `content`; null if there is none.
  nlohmann::json Mark(const std::string& name) const;
  // Returns the text of a mark; "" if there is none.
  std::string MarkText(const std::string& name) const;
  // Returns a switch of tokenizer_config.json. INVALID_ARGUMENT if it is no bool.
  absl::StatusOr<bool> Flag(const char* name, bool otherwise) const;
  // Says whether transformers gives types of tokens to the model: tokenizer_config.json lists them
  // among its model_input_names, or the class does.
  bool takes_types() const;
  // Says whether tokenizer_config.json lists all added tokens, so that no other file counts.
  bool lists_tokens() const { return config.contains("added_tokens_decoder"); }

  nlohmann::json config = nlohmann::json::object();       // tokenizer_config.json
  nlohmann::json marks = nlohmann::json::object();        // special_tokens_map.json
  nlohmann::json more_tokens = nlohmann::json::object();  // added_tokens.json
  std::string class_name;  // tokenizer_class without "Fast", or that of the model_type; or ""
  TokenizerClass kind = TokenizerClass::kNone;
  bool keeps_file = false;               // whatever class is named: see KeepsFile()
  std::optional<Truncation> truncation;  // what tokenizer_config.json says of long texts
  std::vector<std::string> whole;        // tokens that are found in texts as they stand there
  bool lowercase_first = false;          // sentence-transformers lowers texts before all else
};

// Reads the settings beside a file of a tokenizer: tokenizer_config.json, special_tokens_map.json,
// added_tokens.json, config.json and sentence_bert_config.json, as far as they are there.
// INVALID_ARGUMENT names what is wrong.
absl::StatusOr<TokenizerSettings> ReadTokenizerSettings(const std::string& path);

}  // namespace linserve
