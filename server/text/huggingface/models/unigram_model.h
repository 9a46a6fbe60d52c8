#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "text/huggingface/models/found_tokens.h"
#include "text/huggingface/models/token_vocabulary.h"
#include "text/sentencepiece/piece_trie.h"

namespace linserve {

// Takes the way through a piece whose tokens have the greatest sum of scores (Viterbi), as
// SentencePiece does it, in double precision. Takes time in proportion to the piece, for each byte
// at most that of the longest token.
class UnigramModel {
 public:
  // `unknown` is an id, or -1: none.
  UnigramModel(const TokenVocabulary& vocabulary, std::vector<double> scores, int32_t unknown,
               bool byte_fallback);

  // Adds the tokens of a piece, which begins at byte `at` of what was split.
  void Encode(std::string_view piece, size_t at, FoundTokens& found) const;

 private:
  // Describes the best way to a byte.
  struct Best {
    double score = 0;
    uint32_t from = 0;
    int32_t id = kNowhere;
  };
  static constexpr int32_t kNowhere = -2;

  bool ExtendFrom(std::string_view piece, uint32_t from, std::vector<Best>& best) const;
  void AddUnknown(std::string_view piece, size_t begin, size_t end, size_t at,
                  FoundTokens& found) const;

  const TokenVocabulary& vocabulary_;
  const std::vector<double> scores_;  // by id
  const int32_t unknown_;             // -1: none
  double unknown_score_ = 0;
  std::optional<std::array<int32_t, 256>>
      bytes_;  // tokens of bytes, where unknown ones become them
  PieceTrie tokens_;
};

}  // namespace linserve
