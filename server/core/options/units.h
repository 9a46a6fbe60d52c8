#pragma once

#include <optional>
#include <string_view>

namespace linserve {

// Parses a size such as "4GiB", "1.5 MiB", "512MB" or "4Gi" to bytes. The unit must be there; none
// where the text is no size.
std::optional<double> ParseSize(std::string_view text);

// Parses a time such as "30s", "250ms", "5m" or "1.5 h" to nanoseconds, in the same way.
std::optional<double> ParseTime(std::string_view text);

}  // namespace linserve
