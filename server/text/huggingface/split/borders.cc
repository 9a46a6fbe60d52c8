#include "text/huggingface/split/borders.h"

#include <string>
#include <variant>

#include "core/strings/utf8.h"
#include "text/huggingface/characters/characters.h"
#include "text/huggingface/split/character_classes.h"

namespace linserve {
namespace {

Border CutIf(bool cut) { return cut ? Border::kCut : Border::kUnknown; }

Border BorderFor(const BertSplit& /*part*/, char32_t previous, char32_t next) {
  return CutIf(((TraitsOf(previous) | TraitsOf(next)) & (uint32_t{kWhite} | kPunctuation)) != 0);
}

Border BorderFor(const WhitespaceWords& /*part*/, char32_t previous, char32_t next) {
  return CutIf(ClassOf(previous) != ClassOf(next) || IsWhite(next));
}

Border BorderFor(const WhitespaceSplit& /*part*/, char32_t previous, char32_t next) {
  return CutIf(IsWhite(previous) || IsWhite(next));
}

Border BorderFor(const DelimiterSplit& part, char32_t previous, char32_t next) {
  return CutIf(previous == part.delimiter || next == part.delimiter);
}

Border BorderFor(SplitBehavior behavior, bool is_previous, bool is_next) {
  switch (behavior) {
    case SplitBehavior::kRemoved:
    case SplitBehavior::kIsolated:
      return CutIf(is_previous || is_next);
    case SplitBehavior::kContiguous:
      return CutIf(is_previous != is_next);
    case SplitBehavior::kMergedWithNext:
      return is_next && !is_previous ? Border::kCut : Border::kForbidden;
    case SplitBehavior::kMergedWithPrevious:
      break;
  }
  return is_previous && !is_next ? Border::kCut : Border::kForbidden;
}

Border BorderFor(const PunctuationSplit& part, char32_t previous, char32_t next) {
  return BorderFor(part.behavior, IsPunctuation(previous), IsPunctuation(next));
}

Border BorderFor(const DigitsSplit& part, char32_t previous, char32_t next) {
  const auto behavior = part.individual ? SplitBehavior::kIsolated : SplitBehavior::kContiguous;
  return BorderFor(behavior, IsNumeric(previous), IsNumeric(next));
}

// In all patterns of words, one that ends with a letter ends where the letters do; only a mark or
// an apostrophe might go on with it.
Border WordBorder(char32_t previous, char32_t next) {
  const bool ends = (TraitsOf(previous) & kLetter) != 0 &&
                    (TraitsOf(next) & (uint32_t{kLetter} | kCombines)) == 0 && next != '\'';
  return ends ? Border::kCut : Border::kForbidden;
}

Border BorderFor(const PatternSplit& part, char32_t previous, char32_t next) {
  if (part.pattern.words() != nullptr) {
    const bool all_kept = part.behavior == SplitBehavior::kIsolated ||
                          (part.behavior == SplitBehavior::kRemoved && part.invert);
    return all_kept ? WordBorder(previous, next) : Border::kForbidden;
  }
  if (part.invert) return Border::kForbidden;
  if (part.pattern.finds_spaces()) {
    // Neighbours may be one match.
    if (IsWhite(previous) && IsWhite(next)) return Border::kForbidden;
    return BorderFor(part.behavior, IsWhite(previous), IsWhite(next));
  }
  const std::string* const literal = part.pattern.literal();
  if (literal == nullptr || CountCharacters(*literal) != 1) return Border::kForbidden;
  const char32_t code = CharacterAt(*literal, 0).code;
  return BorderFor(part.behavior, previous == code, next == code);
}

Border BorderFor(const MetaspaceSplit& part, char32_t previous, char32_t next) {
  const char32_t own = CharacterAt(part.replacement, 0).code;
  const auto is_symbol = [own](char32_t code) { return code == ' ' || code == own; };
  return part.split && is_symbol(next) && !is_symbol(previous) ? Border::kCut : Border::kForbidden;
}

Border BorderFor(const ByteLevelSplit& part, char32_t previous, char32_t next) {
  return part.use_regex ? WordBorder(previous, next) : Border::kForbidden;
}

}  // namespace

Border BorderOf(const SplitPart& part, char32_t previous, char32_t next) {
  return std::visit([&](const auto& one) { return BorderFor(one, previous, next); }, part);
}

}  // namespace linserve
