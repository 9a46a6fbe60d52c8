#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace linserve {

// Says where something in a text begins and ends, in bytes.
struct ByteRange {
  size_t begin = 0;
  size_t end = 0;
};

// Lists the patterns of the words that byte-level tokenizers take apart, for which there is code
// besides ICU's.
enum class WordPattern : uint8_t {
  kGpt2,    // OpenAI's GPT-2, and all that have ByteLevel's own
  kCl100k,  // OpenAI's later ones, and Llama 3, which take up to three digits at once
  kQwen     // the same, which takes digits one by one
};

// Returns where the word ends that begins at `at`; words follow each other without gaps.
// REQUIRES: a character begins there.
size_t WordEnd(WordPattern pattern, std::string_view text, size_t at);

// Finds what a part of a tokenizer looks for: a text, or a regular expression.
class Pattern {
 public:
  // Takes {"String": ...} or {"Regex": ...}. INVALID_ARGUMENT says what is wrong with it, or which
  // part of it ICU and Oniguruma, which the package has, understand in different ways.
  static absl::StatusOr<Pattern> FromJson(const nlohmann::json& document);
  static Pattern OfWords(WordPattern words);

  // Appends the matches, from the left to the right. INVALID_ARGUMENT if they take too long to
  // find. REQUIRES: the text is UTF-8.
  absl::Status Find(std::string_view text, std::vector<ByteRange>& matches) const;

  // Returns the pattern of words that it is; nullptr if it is none.
  const WordPattern* words() const { return is_words_ ? &words_ : nullptr; }
  // Returns the text that it looks for; nullptr if that is a regular expression.
  const std::string* literal() const { return expression_ || is_words_ ? nullptr : &text_; }
  // Says whether it finds characters of White_Space, and each of those, alone or all that are
  // neighbours.
  bool finds_spaces() const;

 private:
  class Expression;

  Pattern() = default;

  bool is_words_ = false;
  WordPattern words_ = WordPattern::kGpt2;
  std::string text_;  // to look for, or of the expression
  std::shared_ptr<const Expression> expression_;
};

}  // namespace linserve
