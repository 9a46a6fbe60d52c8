#include "core/strings/quote.h"

#include "core/strings/utf8.h"

namespace linserve {
namespace {

constexpr size_t kLongestQuote = 64;

bool IsControl(char byte) { return static_cast<unsigned char>(byte) < 0x20u || byte == 0x7f; }

}  // namespace

std::string Quoted(std::string_view text) {
  // A status message must be UTF-8, so the cut may not fall inside a character.
  const std::string_view shown = CutAtCharacter(text, kLongestQuote);
  std::string quoted = "'";
  for (char byte : shown) quoted += IsControl(byte) ? '?' : byte;
  if (shown.size() < text.size()) quoted += "...";
  return quoted + "'";
}

}  // namespace linserve
