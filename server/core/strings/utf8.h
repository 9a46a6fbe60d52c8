#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace linserve {

// Returns how many bytes of the text, from its beginning, are whole characters of UTF-8.
size_t Utf8Prefix(std::string_view text);

// Returns whether the text is UTF-8, as protobuf and JSON need it.
inline bool IsUtf8(std::string_view text) { return Utf8Prefix(text) == text.size(); }

// Returns the text with a '?' in the place of each byte that is no part of a character of UTF-8.
std::string AsUtf8(std::string_view text);

// Returns the bytes of the character that the text begins with; 0 if the text is empty or begins
// with no character of UTF-8.
size_t CharacterBytes(std::string_view text);

// Counts the characters of a text of UTF-8.
size_t CountCharacters(std::string_view text);

// Returns where the character begins that the byte at `at` is part of. REQUIRES: the text up to
// there is UTF-8.
size_t CharacterBegin(std::string_view text, size_t at);

// Returns the beginning of a text of UTF-8: `most` bytes, or a few less where the cut would fall
// inside a character.
std::string_view CutAtCharacter(std::string_view text, size_t most);

}  // namespace linserve
