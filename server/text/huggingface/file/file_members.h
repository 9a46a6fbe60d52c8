#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "text/huggingface/file/model_members.h"

namespace linserve {

// Names the marks around a text, where they follow from the tokenizer's class.
struct NamedMarks {
  std::string before;  // "": there is none, between two texts either
  std::string after;
  bool as_roberta = false;    // the form of two texts; otherwise it is Bert's
  bool trims_places = false;  // see PostProcessing
  bool has_prefix = false;
};

// Holds the members of a tokenizer.json: the model, and the others as they stand there.
struct FileMembers {
  std::optional<ModelMembers> model;
  nlohmann::json version;
  nlohmann::json truncation;
  nlohmann::json added_tokens = nlohmann::json::array();
  nlohmann::json normalizer;
  nlohmann::json pre_tokenizer;
  nlohmann::json post_processor;
  nlohmann::json decoder;
  std::optional<NamedMarks> marks;  // in the place of post_processor
};

// Reads the members; those of the model are checked, the others as far as they are JSON.
// INVALID_ARGUMENT says what is wrong.
absl::StatusOr<FileMembers> ReadFileMembers(std::string_view text);

}  // namespace linserve
