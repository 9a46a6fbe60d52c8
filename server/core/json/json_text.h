#pragma once

#include <exception>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace linserve {

// Parses JSON, in which comments are allowed. INVALID_ARGUMENT says what is wrong; so it is with
// what is nested more than 64 deep, since what walks through JSON may be recursive, and with an
// object in which a key stands twice.
absl::StatusOr<nlohmann::json> ParseJson(std::string_view text);

// Returns what the JSON library says of a fault, without its own number of it.
std::string JsonFault(const std::exception& error);

// Writes JSON, on one line unless there is an `indent`. Names from outside stand in it, in whatever
// encoding: what is not UTF-8 is replaced, where dump() alone would throw.
template <typename Json = nlohmann::json>
std::string JsonText(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, nlohmann::detail::error_handler_t::replace);
}

}  // namespace linserve
