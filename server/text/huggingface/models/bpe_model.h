#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "text/huggingface/models/found_tokens.h"
#include "text/huggingface/models/token_vocabulary.h"

namespace linserve {

// Says how a BpeModel is made, by the names in the file.
struct BpeOptions {
  std::string unk_token;  // "": unknown characters are left out
  std::string continuing_subword_prefix;
  std::string end_of_word_suffix;
  bool fuse_unk = false;
  bool byte_fallback = false;
  bool ignore_merges = false;
};

// Merges neighbours of a word into tokens, in the order that the file lists them. Takes time in
// proportion to the word, times the logarithm of that.
class BpeModel {
 public:
  using Merge = std::pair<int32_t, int32_t>;  // the ids of what is merged

  // Takes the merges in their order. `takes_bytes` says that words come as bytes, and not as the
  // characters that stand for them. INVALID_ARGUMENT names a merge that makes no token.
  static absl::StatusOr<BpeModel> Make(const TokenVocabulary& vocabulary,
                                       const std::vector<Merge>& merges, BpeOptions options,
                                       bool takes_bytes);

  // Says whether words may come as bytes: no option adds characters to them.
  static bool MayTakeBytes(const BpeOptions& options) {
    return options.continuing_subword_prefix.empty() && options.end_of_word_suffix.empty() &&
           !options.byte_fallback;
  }

  // Adds the tokens of a word, which begins at byte `at` of what was split.
  void Encode(std::string_view word, size_t at, FoundTokens& found) const;

 private:
  // Represents a part of a word that is one token so far.
  struct Symbol {
    int32_t id = 0;
    uint32_t bytes = 0;
  };
  // Says at which place of the list a merge stands, and what it makes.
  struct Merged {
    int32_t rank = 0;
    int32_t id = 0;
  };
  class Word;
  class FewMerges;
  class ManyMerges;

  BpeModel(const TokenVocabulary& vocabulary, BpeOptions options, bool takes_bytes);
  absl::Status AddMerges(const std::vector<Merge>& merges);
  void IndexWords();
  int32_t WordOf(std::string_view word) const;
  // Merges the symbols of a word as far as that goes. Returns false if something is unknown, and
  // there is no token for that.
  bool Symbols(std::string_view word, std::vector<Symbol>& symbols) const;
  const Merged* Find(int32_t left, int32_t right) const;

  const TokenVocabulary* vocabulary_;
  const BpeOptions options_;
  const bool takes_bytes_;
  const int32_t unknown_;             // -1: none
  std::array<int32_t, 256> bytes_{};  // tokens that name a byte, or where words are bytes, are one
  absl::flat_hash_map<uint64_t, Merged> merges_;
  // Holds the words that become one token, so that most need not be merged. It is no cache: it is
  // made once, of the vocabulary.
  absl::flat_hash_map<std::string_view, int32_t> words_;
  std::vector<std::string> word_bytes_;  // the texts of the above, where words are bytes
};

}  // namespace linserve
