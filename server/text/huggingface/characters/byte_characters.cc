#include "text/huggingface/characters/byte_characters.h"

#include <array>
#include <string>

#include "text/huggingface/characters/characters.h"

namespace linserve {
namespace {

constexpr char32_t kFirstOfOthers = 0x100;
constexpr char32_t kPastOthers = 0x144;

struct ByteTable {
  ByteTable() {
    char32_t other = kFirstOfOthers;
    for (uint32_t byte = 0; byte < characters.size(); ++byte) {
      const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xA1u && byte != 0xADu);
      const char32_t code = printable ? byte : other++;
      characters[byte] = std::string_view(Utf8Character(code));
      bytes[code] = static_cast<int16_t>(byte);
    }
  }

  std::array<std::string, 256> characters;
  std::array<int16_t, kPastOthers> bytes = [] {
    std::array<int16_t, kPastOthers> none{};
    none.fill(-1);
    return none;
  }();
};

const ByteTable& Bytes() {
  static const ByteTable table;
  return table;
}

}  // namespace

std::string_view CharacterOfByte(char byte) {
  return Bytes().characters[static_cast<unsigned char>(byte)];
}

std::optional<char> ByteOfCharacter(char32_t code) {
  if (code >= kPastOthers || Bytes().bytes[code] < 0) return std::nullopt;
  return static_cast<char>(Bytes().bytes[code]);
}

}  // namespace linserve
