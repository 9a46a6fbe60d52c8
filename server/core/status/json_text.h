#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "absl/status/statusor.h"

namespace linserve {

// Parses JSON, in which comments are allowed. INVALID_ARGUMENT says what is wrong; so it is with
// what is nested more than 64 deep, since what walks through JSON may be recursive.
absl::StatusOr<nlohmann::json> ParseJson(std::string_view text);

}  // namespace linserve
