#pragma once

#include <cstdint>

#include "text/huggingface/characters/characters.h"

namespace linserve {

inline bool IsPunctuation(char32_t code) { return (TraitsOf(code) & kPunctuation) != 0; }
inline bool IsNumeric(char32_t code) { return (TraitsOf(code) & kNumeric) != 0; }

// Lists what WhitespaceWords takes for one word together.
enum class WordClass : uint8_t { kSpace, kWord, kOther };

inline WordClass ClassOf(char32_t code) {
  const uint32_t traits = TraitsOf(code);
  if ((traits & kWord) != 0) return WordClass::kWord;
  return (traits & kWhite) != 0 ? WordClass::kSpace : WordClass::kOther;
}

}  // namespace linserve
