#include "core/json/json_number.h"

#include <cmath>
#include <cstdlib>
#include <string>

namespace linserve {

std::optional<double> DoubleOf(std::string_view text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, value);
  // from_chars() does not tell what is too small, and is zero, from what is too large.
  if (error == std::errc::result_out_of_range) {
    value = std::strtod(std::string(text).c_str(), nullptr);
  } else if (error != std::errc() || last != end) {
    return std::nullopt;
  }
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

}  // namespace linserve
