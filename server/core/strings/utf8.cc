#include "core/strings/utf8.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace linserve {
namespace {

// Says what a character of several bytes looks like, as Unicode's table of well-formed UTF-8
// (chapter 3, table 3-7) does: the bytes after the second are all 80 to BF.
struct Form {
  uint8_t first_least, first_most, second_least, second_most;
  size_t bytes;
};
constexpr std::array<Form, 8> kForms = {{{0xC2, 0xDF, 0x80, 0xBF, 2},
                                         {0xE0, 0xE0, 0xA0, 0xBF, 3},
                                         {0xE1, 0xEC, 0x80, 0xBF, 3},
                                         {0xED, 0xED, 0x80, 0x9F, 3},
                                         {0xEE, 0xEF, 0x80, 0xBF, 3},
                                         {0xF0, 0xF0, 0x90, 0xBF, 4},
                                         {0xF1, 0xF3, 0x80, 0xBF, 4},
                                         {0xF4, 0xF4, 0x80, 0x8F, 4}}};

uint8_t ByteAt(std::string_view text, size_t at) { return static_cast<uint8_t>(text[at]); }

bool IsInner(uint8_t byte) { return (byte & 0xC0) == 0x80; }

}  // namespace

size_t Utf8Prefix(std::string_view text) {
  size_t prefix = 0;
  while (prefix < text.size()) {
    const size_t bytes = CharacterBytes(text.substr(prefix));
    if (bytes == 0) return prefix;
    prefix += bytes;
  }
  return prefix;
}

std::string AsUtf8(std::string_view text) {
  std::string shown;
  while (true) {
    const size_t whole = Utf8Prefix(text);
    shown += text.substr(0, whole);
    if (whole == text.size()) return shown;
    shown += '?';
    text.remove_prefix(whole + 1);
  }
}

size_t CharacterBytes(std::string_view text) {
  if (text.empty()) return 0;
  const uint8_t first = ByteAt(text, 0);
  if (first < 0x80) return 1;
  for (const Form& form : kForms) {
    if (first > form.first_most) continue;
    if (first < form.first_least || text.size() < form.bytes) return 0;
    const uint8_t second = ByteAt(text, 1);
    if (second < form.second_least || second > form.second_most) return 0;
    for (size_t i = 2; i < form.bytes; ++i) {
      if (!IsInner(ByteAt(text, i))) return 0;
    }
    return form.bytes;
  }
  return 0;
}

size_t CountCharacters(std::string_view text) {
  const auto begins = [](char byte) { return !IsInner(static_cast<uint8_t>(byte)); };
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), begins));
}

size_t CharacterBegin(std::string_view text, size_t at) {
  while (at > 0 && IsInner(ByteAt(text, at))) --at;
  return at;
}

std::string_view CutAtCharacter(std::string_view text, size_t most) {
  return text.size() <= most ? text : text.substr(0, CharacterBegin(text, most));
}

}  // namespace linserve
