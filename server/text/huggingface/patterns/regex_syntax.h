#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace linserve {

// Returns a regular expression of Oniguruma (https://github.com/kkos/oniguruma, its syntax of Ruby)
// as ICU writes it. INVALID_ARGUMENT names what the two understand in different ways, or what only
// one of them knows.
absl::StatusOr<std::string> ForIcu(std::string_view expression);

}  // namespace linserve
