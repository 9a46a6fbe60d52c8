#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace linserve {

// Holds a character of a text and the bytes that it takes there.
struct Character {
  char32_t code = 0;
  size_t bytes = 0;
};

// Returns the character at `at`. REQUIRES: the text is UTF-8, and a character begins there.
inline Character CharacterAt(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) {
    return static_cast<char32_t>(static_cast<unsigned char>(text[at + i]));
  };
  const char32_t first = byte(0);
  if (first < 0x80u) return {first, 1};
  if (first < 0xE0u) return {(first & 0x1Fu) << 6u | (byte(1) & 0x3Fu), 2};
  if (first < 0xF0u) {
    return {(first & 0x0Fu) << 12u | (byte(1) & 0x3Fu) << 6u | (byte(2) & 0x3Fu), 3};
  }
  return {(first & 0x07u) << 18u | (byte(1) & 0x3Fu) << 12u | (byte(2) & 0x3Fu) << 6u |
              (byte(3) & 0x3Fu),
          4};
}

// Returns the character that ends before `at`. REQUIRES: the text is UTF-8, and `at` is above 0.
Character CharacterBefore(std::string_view text, size_t at);

// Holds one character as UTF-8.
class Utf8Character {
 public:
  explicit Utf8Character(char32_t code);
  // NOLINTNEXTLINE(google-explicit-constructor): it is such a text
  operator std::string_view() const { return {bytes_, size_}; }

 private:
  char bytes_[4] = {};
  size_t size_ = 0;
};

// Lists what a character can be to the parts of a tokenizer, as the package `tokenizers` has it.
// Its libraries are each of a Unicode version of their own, and so are these.
enum CharacterTrait : uint32_t {
  kWhite = 1U << 0U,        // White_Space, and \s of regular expressions
  kRemoved = 1U << 1U,      // by the cleaning of BertNormalizer: controls, formats, private use
  kPunctuation = 1U << 2U,  // that of BertPreTokenizer and Punctuation
  kNonspacing = 1U << 3U,   // a mark that BertNormalizer strips
  kMark = 1U << 4U,         // one that StripAccents strips
  kIdeograph = 1U << 5U,    // that BertNormalizer puts spaces around
  kNumeric = 1U << 6U,      // that Digits splits at
  kWord = 1U << 7U,         // \w of Whitespace, and beside an added token
  kUpper = 1U << 8U,        // it has another lower case
  kLetter = 1U << 9U,       // \p{L} of regular expressions
  kNumber = 1U << 10U,      // \p{N} of regular expressions
  kCombines = 1U << 11U,    // \p{M} of regular expressions
  kNotNfc = 1U << 12U,      // may change in this form, by itself or beside others
  kNotNfd = 1U << 13U,
  kNotNfkc = 1U << 14U,
  kNotNfkd = 1U << 15U,
  kJoins = 1U << 16U,        // may change with what is before it, in some form
  kPlainCluster = 1U << 17U  // never part of a grapheme cluster beside another such
};

// Returns the traits of a character, those above or-ed. They are computed by ICU, once.
uint32_t TraitsOf(char32_t code);

inline bool IsWhite(char32_t code) { return (TraitsOf(code) & kWhite) != 0; }

// Returns one number for two neighbours.
constexpr uint64_t PairOf(char32_t previous, char32_t next) {
  return uint64_t{previous} << 32U | next;
}

// Returns the characters of Unicode 16 that the package's regular expressions know, and ICU's do
// not, as ICU writes them in a set: those of \p{L}, \p{N}, which are those of \d, \p{M}, or \w.
// REQUIRES: `trait` is kLetter, kNumber, kCombines or kWord.
std::string NewCharacters(CharacterTrait trait);

// Appends the lower case of a character, by itself.
void AppendLower(char32_t code, std::u32string& lower);

}  // namespace linserve
