#include "text/huggingface/characters/characters.h"
#include "text/huggingface/patterns/pattern.h"

namespace linserve {
namespace {

// Walks over a text character by character.
class Walk {
 public:
  Walk(std::string_view text, size_t at) : text_(text), at_(at) { Look(); }

  size_t at() const { return at_; }
  bool ended() const { return at_ == text_.size(); }
  bool Is(char32_t code) const { return !ended() && next_.code == code; }
  bool Is(CharacterTrait trait) const { return !ended() && (traits_ & trait) != 0; }
  bool IsLineBreak() const { return Is(U'\r') || Is(U'\n'); }
  // Says whether what comes next is neither space, letter nor number.
  bool IsOther() const {
    return !ended() && (traits_ & (uint32_t{kWhite} | kLetter | kNumber)) == 0;
  }

  void Pass() {
    at_ += next_.bytes;
    Look();
  }
  void PassAll(CharacterTrait trait) {
    while (Is(trait)) Pass();
  }
  void PassOthers() {
    while (IsOther()) Pass();
  }

 private:
  void Look() {
    if (ended()) return;
    next_ = CharacterAt(text_, at_);
    traits_ = TraitsOf(next_.code);
  }

  std::string_view text_;
  size_t at_;
  Character next_;
  uint32_t traits_ = 0;
};

// Returns the bytes of an English contraction that the text begins with, of its apostrophe and what
// follows; 0 if there is none. The long s is an s where cases are one.
size_t Contraction(std::string_view text, bool any_case) {
  if (text.size() < 2 || text[0] != '\'') return 0;
  const auto letter = [&](size_t i) {
    const char c = i < text.size() ? text[i] : '\0';
    return any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  const char first = letter(1);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
  const char second = letter(2);
  if ((first == 'r' || first == 'v') && second == 'e') return 3;
  if (first == 'l' && second == 'l') return 3;
  constexpr std::string_view kLongS = "\xC5\xBF";
  return any_case && text.substr(1).starts_with(kLongS) ? 1 + kLongS.size() : 0;
}

// Returns the end of a run of spaces: all of them at the end of the text, else all but the last,
// which belongs to what follows, unless that is the only one.
size_t SpacesEnd(std::string_view text, size_t at) {
  Walk walk(text, at);
  size_t last = at;
  while (walk.Is(kWhite)) {
    last = walk.at();
    walk.Pass();
  }
  return walk.ended() || last == at ? walk.at() : last;
}

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
size_t Gpt2WordEnd(std::string_view text, size_t at) {
  if (const size_t bytes = Contraction(text.substr(at), false); bytes > 0) return at + bytes;
  Walk walk(text, at);
  if (walk.Is(U' ')) walk.Pass();
  if (walk.Is(kLetter)) {
    walk.PassAll(kLetter);
  } else if (walk.Is(kNumber)) {
    walk.PassAll(kNumber);
  } else if (walk.IsOther()) {
    walk.PassOthers();
  } else {
    return SpacesEnd(text, at);
  }
  return walk.at();
}

// \s*[\r\n]+|\s+(?!\S)|\s+, where a space begins
size_t LineOrSpacesEnd(std::string_view text, size_t at) {
  size_t after_break = at;
  for (Walk walk(text, at); walk.Is(kWhite);) {
    const bool line_break = walk.IsLineBreak();
    walk.Pass();
    if (line_break) after_break = walk.at();
  }
  return after_break > at ? after_break : SpacesEnd(text, at);
}

// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,n}| ?[^\s\p{L}\p{N}]+[\r\n]*|
// \s*[\r\n]+|\s+(?!\S)|\s+
size_t Cl100kWordEnd(std::string_view text, size_t at, int digits) {
  if (const size_t bytes = Contraction(text.substr(at), true); bytes > 0) return at + bytes;
  Walk walk(text, at);
  if (!walk.IsLineBreak() && !walk.Is(kLetter) && !walk.Is(kNumber)) {
    Walk word = walk;
    word.Pass();
    if (word.Is(kLetter)) walk = word;
  }
  if (walk.Is(kLetter)) {
    walk.PassAll(kLetter);
    return walk.at();
  }
  if (walk.Is(kNumber)) {
    for (int i = 0; i < digits && walk.Is(kNumber); ++i) walk.Pass();
    return walk.at();
  }
  if (walk.Is(U' ')) walk.Pass();
  if (!walk.IsOther()) return LineOrSpacesEnd(text, at);
  walk.PassOthers();
  while (walk.IsLineBreak()) walk.Pass();
  return walk.at();
}

}  // namespace

size_t WordEnd(WordPattern pattern, std::string_view text, size_t at) {
  constexpr int kTriples = 3;
  switch (pattern) {
    case WordPattern::kGpt2:
      return Gpt2WordEnd(text, at);
    case WordPattern::kCl100k:
      return Cl100kWordEnd(text, at, kTriples);
    case WordPattern::kQwen:
      break;
  }
  return Cl100kWordEnd(text, at, 1);
}

}  // namespace linserve
