#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "repository/repository.h"

namespace linserve {

// Returns the model's prompt of this name, which is to stand before each text; for "" its default
// one, or "" if it has none. INVALID_ARGUMENT lists the names that there are.
absl::StatusOr<std::string> PromptOf(const ServedModel& model, const std::string& asked);

}  // namespace linserve
