#pragma once

#include <unicode/uchar.h>

#include <cstdint>

namespace linserve {

// Returns whether a version of Unicode has the character.
inline bool IsIn(char32_t code, uint8_t version) {
  UVersionInfo age;
  u_charAge(static_cast<UChar32>(code), age);
  return age[0] > 0 && age[0] <= version;
}

// Returns whether the package's normalization forms know the character: they are of Unicode 9.
// What is newer stays what it is, and combines with nothing.
inline bool IsKnownToForms(char32_t code) { return IsIn(code, 9); }

}  // namespace linserve
