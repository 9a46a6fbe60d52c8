#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "text/huggingface/models/found_tokens.h"
#include "text/huggingface/models/token_vocabulary.h"
#include "text/sentencepiece/piece_trie.h"

namespace linserve {

// Takes each word for a token, or for the unknown one.
class WordLevelModel {
 public:
  WordLevelModel(const TokenVocabulary& vocabulary, const std::string& unknown)
      : vocabulary_(vocabulary), unknown_(vocabulary.Find(unknown)) {}

  // Adds the token of a word, which begins at byte `at` of what was split.
  void Encode(std::string_view word, size_t at, FoundTokens& found) const;

 private:
  const TokenVocabulary& vocabulary_;
  const int32_t unknown_;  // -1: none
};

// Says how a WordPieceModel is made, by the names in the file.
struct WordPieceOptions {
  std::string unk_token = "[UNK]";
  std::string continuing_subword_prefix = "##";
  int64_t max_input_chars_per_word = 100;
};

// Takes the longest token that a word begins with, then the longest that goes on from there. A word
// that does not end so, or has too many characters, is one unknown token. Takes time in proportion
// to the word, for each byte at most that of the longest token.
class WordPieceModel {
 public:
  WordPieceModel(const TokenVocabulary& vocabulary, const WordPieceOptions& options);

  // Adds the tokens of a word, which begins at byte `at` of what was split.
  void Encode(std::string_view word, size_t at, FoundTokens& found) const;

 private:
  bool TakePieces(std::string_view word, size_t at, FoundTokens& found) const;

  const size_t most_characters_;
  const int32_t unknown_;  // -1: none
  PieceTrie beginnings_;
  PieceTrie continuations_;  // without their prefix
};

}  // namespace linserve
