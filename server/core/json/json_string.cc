#include "core/json/json_string.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>

#include "core/strings/utf8.h"

namespace linserve {
namespace {

constexpr std::string_view kEscapes = "\"\\/bfnrt";
constexpr std::string_view kEscaped = "\"\\/\b\f\n\r\t";

constexpr size_t kUnitSize = 6;  // of "\u0000"
constexpr uint32_t kHighSurrogates = 0xd800;
constexpr uint32_t kLowSurrogates = 0xdc00;
constexpr uint32_t kPastSurrogates = 0xe000;
constexpr uint32_t kPastUnits = 0x10000;

// Says what is wrong with a string, before its place in the text is known.
absl::Status StringFault(const std::string& what, size_t at) {
  return absl::InvalidArgumentError(" " + what + " at byte " + std::to_string(at + 1));
}

// Appends what stands between escapes, at byte `at`.
absl::Status AppendPlain(std::string_view plain, size_t at, std::string& text) {
  const auto* const control = std::find_if(
      plain.begin(), plain.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20u; });
  if (control != plain.end()) {
    return StringFault("is not JSON: a syntax error",
                       at + static_cast<size_t>(control - plain.begin()));
  }
  const size_t utf8 = Utf8Prefix(plain);
  if (utf8 < plain.size()) return StringFault("holds a string that is not UTF-8", at + utf8);
  text += plain;
  return absl::OkStatus();
}

// Reads the "\u0000" that the text begins with; nullopt if it begins otherwise.
std::optional<uint32_t> Unit(std::string_view raw) {
  if (!raw.starts_with("\\u") || raw.size() < kUnitSize) return std::nullopt;
  uint32_t unit = 0;
  const char* const end = raw.data() + kUnitSize;
  const auto [last, error] = std::from_chars(raw.data() + 2, end, unit, 16);
  if (error != std::errc() || last != end) return std::nullopt;
  return unit;
}

void AppendCharacter(uint32_t code, std::string& text) {
  const auto append = [&](uint32_t byte) { text += static_cast<char>(byte); };
  const auto rest = [&](uint32_t shift) { append(0x80u | ((code >> shift) & 0x3fu)); };
  if (code < 0x80u) return append(code);
  if (code < 0x800u) {
    append(0xc0u | (code >> 6u));
  } else {
    if (code < kPastUnits) {
      append(0xe0u | (code >> 12u));
    } else {
      append(0xf0u | (code >> 18u));
      rest(12);
    }
    rest(6);
  }
  rest(0);
}

// Appends the character of the "\u0000" or two that `raw` begins with, and returns its size there.
absl::StatusOr<size_t> AppendUnits(std::string_view raw, size_t at, std::string& text) {
  const auto unit = Unit(raw);
  if (!unit) return StringFault("is not JSON: a syntax error", at);
  if (*unit < kHighSurrogates || *unit >= kPastSurrogates) {
    AppendCharacter(*unit, text);
    return kUnitSize;
  }
  const auto low = Unit(raw.substr(kUnitSize));
  const bool pair =
      *unit < kLowSurrogates && low && *low >= kLowSurrogates && *low < kPastSurrogates;
  if (!pair) {
    return StringFault("holds a lone surrogate, " + std::string(raw.substr(0, kUnitSize)) +
                           ", which is half a character,",
                       at);
  }
  AppendCharacter(kPastUnits + ((*unit - kHighSurrogates) << 10u) + (*low - kLowSurrogates), text);
  return 2 * kUnitSize;
}

// Appends what the escape is that `raw` begins with, and returns its size.
absl::StatusOr<size_t> AppendEscaped(std::string_view raw, size_t at, std::string& text) {
  const size_t escape = raw.size() < 2 ? std::string_view::npos : kEscapes.find(raw[1]);
  if (escape == std::string_view::npos) return AppendUnits(raw, at, text);
  text += kEscaped[escape];
  return size_t{2};
}

absl::StatusOr<std::string> UnescapedFrom(std::string_view raw, size_t offset) {
  std::string text;
  text.reserve(raw.size());
  size_t at = 0;
  while (at < raw.size()) {
    const size_t plain = std::min(raw.find('\\', at), raw.size());
    absl::Status status = AppendPlain(raw.substr(at, plain - at), offset + at, text);
    if (!status.ok()) return status;
    at = plain;
    if (at == raw.size()) break;
    const auto escape = AppendEscaped(raw.substr(at), offset + at, text);
    if (!escape.ok()) return escape.status();
    at += *escape;
  }
  return text;
}

}  // namespace

absl::StatusOr<std::string> Unescaped(std::string_view raw, size_t offset, std::string_view name) {
  auto text = UnescapedFrom(raw, offset);
  if (text.ok()) return text;
  return absl::InvalidArgumentError(std::string(name) + std::string(text.status().message()));
}

}  // namespace linserve
