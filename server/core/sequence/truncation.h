#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace linserve {

// Says what becomes of a text with more tokens than the model takes: it is a fault (kNone), or its
// first (kLeft) or last (kRight) tokens are dropped.
enum class Truncation : uint8_t { kNone, kLeft, kRight };

// Names the values of Truncation in their order, as command lines and requests do.
inline constexpr std::array<std::string_view, 3> kTruncationNames = {"none", "left", "right"};

std::string_view Name(Truncation truncation);
std::optional<Truncation> TruncationFromName(std::string_view name);

// Says what a request asks for where texts are too long; nullopt: what the model does by itself.
struct AskedTruncation {
  std::optional<bool> truncate{};
  std::optional<Truncation> side{};

  // Returns what becomes of texts of a model that does `by_itself`: what is cut without a side
  // being named loses its last tokens.
  Truncation Over(Truncation by_itself) const {
    if (!truncate.value_or(by_itself != Truncation::kNone)) return Truncation::kNone;
    return side.value_or(by_itself == Truncation::kNone ? Truncation::kRight : by_itself);
  }
};

// Returns the smaller of two numbers of tokens that a text may have, of which 0 is any.
constexpr int64_t SmallerLimit(int64_t a, int64_t b) {
  return a == 0 || b == 0 ? a + b : std::min(a, b);
}

}  // namespace linserve
