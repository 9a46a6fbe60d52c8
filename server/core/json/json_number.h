#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

namespace linserve {

// Returns the number of a JSON value's text; nullopt if that is no integer, or T has none such.
template <std::integral T>
std::optional<T> IntegerOf(std::string_view text) {
  const auto read = [&](auto value) -> std::optional<T> {
    const char* const end = text.data() + text.size();
    const auto [last, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || last != end || !std::in_range<T>(value)) return std::nullopt;
    return static_cast<T>(value);
  };
  return text.starts_with('-') ? read(int64_t{0}) : read(uint64_t{0});
}

// Returns the number of a JSON value's text; nullopt if that is no number, or one beyond double's.
std::optional<double> DoubleOf(std::string_view text);

}  // namespace linserve
