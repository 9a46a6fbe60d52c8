#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "absl/status/statusor.h"

namespace linserve {

// A JSON object from outside. INVALID_ARGUMENT if it is none, or nested more deeply than any that
// this server takes: what walks through it may be recursive.
absl::StatusOr<nlohmann::json> ParseObject(std::string_view text);

// The text of a JSON value. Names from outside stand in answers, in whatever encoding.
template <typename Json>
std::string ToText(const Json& json) {
  return json.dump(-1, ' ', false, nlohmann::detail::error_handler_t::replace);
}

}  // namespace linserve
