#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/sentencepiece/piece_trie.h"

namespace linserve {

// Holds a token that stands beside those of the model, and is taken out of a text before it is
// split. The members are those of the file, but for the last one.
struct AddedToken {
  std::string content;
  int64_t id = 0;
  bool single_word = false;
  bool lstrip = false;
  bool rstrip = false;
  bool normalized = true;
  bool special = false;
  bool stays_text = false;  // it is passed over in texts, which the model splits like others
};

// Finds added tokens in texts: of those that begin somewhere the longest, and after it the next.
class AddedTokenFinder {
 public:
  // Names a text that is looked for, and which of the tokens it is of.
  using Entry = std::pair<std::string, int32_t>;

  // REQUIRES: the entries' numbers are those of tokens. Of two entries with one text, the first
  // counts.
  AddedTokenFinder(std::vector<AddedToken> tokens, std::vector<Entry> entries);

  // Holds a token that was found, with the space around it that it takes.
  struct Match {
    size_t begin = 0;
    size_t end = 0;
    size_t resume = 0;  // where to look for the next one
    const AddedToken* token = nullptr;
  };

  // Returns the first one that begins at `from` or later, and before `limit`; nullopt if there is
  // none, and then `from` is where to go on later. What is before `taken` belongs to another
  // already. `before` is the character before the text, if there is one.
  std::optional<Match> Next(std::string_view text, size_t& from, size_t limit, size_t taken,
                            std::optional<char32_t> before = std::nullopt) const;

  // Returns whether what is found on both sides of the border between these characters does not
  // depend on the other side.
  bool CanCut(char32_t previous, char32_t next) const;

  bool empty() const { return trie_.empty(); }

 private:
  bool IsSingleWord(std::string_view text, size_t begin, size_t end,
                    std::optional<char32_t> before) const;

  std::vector<AddedToken> tokens_;
  PieceTrie trie_;                    // of the entries
  std::array<bool, 256> begins_{};    // the first bytes of entries
  std::vector<uint64_t> neighbours_;  // characters side by side in an entry
  bool takes_space_before_ = false;
  bool takes_space_after_ = false;
};

}  // namespace linserve
