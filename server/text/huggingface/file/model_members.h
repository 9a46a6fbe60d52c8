#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "core/json/json_reader.h"

namespace linserve {

// Holds what the part `model` of a tokenizer.json says, before the rest of the file is known.
struct ModelMembers {
  std::string type;
  std::vector<std::pair<std::string, int64_t>> tokens;
  std::vector<double> scores;  // of the tokens, where they have any
  std::vector<std::pair<std::string, std::string>> merges;
  std::string unk_token;
  bool has_unk_token = false;
  int64_t unk_id = -1;
  std::string continuing_subword_prefix;
  bool has_prefix = false;
  std::string end_of_word_suffix;
  int64_t max_input_chars_per_word = 0;
  double dropout = 0;
  bool fuse_unk = false;
  bool byte_fallback = false;
  bool ignore_merges = false;
};

// Reads the next value. INVALID_ARGUMENT says what is wrong with it.
absl::Status ReadModelMembers(JsonReader& reader, ModelMembers& members);

// Returns the type of a model, which older files do not name.
std::string ModelTypeOf(const ModelMembers& members);

// These read the files that older tokenizers consist of: a vocab.txt, whose lines are the tokens; a
// vocab.json, an object of tokens with their ids; and a merges.txt, with a merge in each line.
// INVALID_ARGUMENT says what is wrong with one.
absl::Status ReadVocabularyLines(std::string_view text, ModelMembers& members);
absl::Status ReadVocabularyObject(std::string_view text, ModelMembers& members);
absl::Status ReadMergeLines(std::string_view text, ModelMembers& members);

}  // namespace linserve
