#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace linserve {

// Returns the character that stands for a byte in byte-level vocabularies, as OpenAI's GPT-2 had
// it first: printable ones of Latin-1 for themselves, others from U+0100 on.
std::string_view CharacterOfByte(char byte);

// Returns the byte that a character stands for; nullopt if it stands for none.
std::optional<char> ByteOfCharacter(char32_t code);

}  // namespace linserve
