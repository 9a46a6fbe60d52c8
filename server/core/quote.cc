#include "core/quote.h"

namespace linserve {
namespace {

constexpr size_t kLongestQuote = 64;

bool ContinuesCharacter(char byte) { return (static_cast<unsigned char>(byte) & 0xc0u) == 0x80u; }

bool IsControl(char byte) { return static_cast<unsigned char>(byte) < 0x20u || byte == 0x7f; }

}  // namespace

std::string Quoted(std::string_view text) {
  size_t length = text.size();
  if (length > kLongestQuote) {
    length = kLongestQuote;
    // A status message must be UTF-8, so the cut may not fall inside a character.
    while (length > 0 && ContinuesCharacter(text[length])) --length;
  }
  std::string quoted = "'";
  for (char byte : text.substr(0, length)) quoted += IsControl(byte) ? '?' : byte;
  if (length < text.size()) quoted += "...";
  return quoted + "'";
}

}  // namespace linserve
