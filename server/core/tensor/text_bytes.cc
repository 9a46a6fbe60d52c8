#include "core/tensor/text_bytes.h"

#include <cstdint>
#include <cstring>

namespace linserve {
namespace {

using LengthPrefix = uint32_t;

}  // namespace

void AppendText(std::string_view text, std::string& raw) {
  const auto length = static_cast<LengthPrefix>(text.size());
  raw.append(reinterpret_cast<const char*>(&length), sizeof(length));
  raw += text;
}

absl::StatusOr<std::vector<std::string_view>> TextsIn(std::string_view raw, size_t most) {
  std::vector<std::string_view> texts;
  while (!raw.empty()) {
    if (texts.size() == most) {
      return absl::InvalidArgumentError("it holds more than " + std::to_string(most) + " texts");
    }
    LengthPrefix length = 0;
    if (raw.size() >= sizeof(length)) std::memcpy(&length, raw.data(), sizeof(length));
    if (raw.size() < sizeof(length) || raw.size() - sizeof(length) < length) {
      return absl::InvalidArgumentError(
          "text " + std::to_string(texts.size()) +
          " ends before its length, expected 4 bytes of length before each text's bytes");
    }
    texts.push_back(raw.substr(sizeof(length), length));
    raw.remove_prefix(sizeof(length) + length);
  }
  return texts;
}

}  // namespace linserve
