#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "absl/status/status.h"

namespace linserve {

// The status, which tells the caller to try again after this time and not before.
absl::Status RetryAfter(absl::Status status, std::chrono::milliseconds delay);

// What RetryAfter() gave it, if anything.
std::optional<std::chrono::milliseconds> RetryDelayOf(const absl::Status& status);

// The status, which says that trying again is in vain: what is asked for exceeds what there ever
// is.
absl::Status NeverFits(absl::Status status);
bool IsNeverFits(const absl::Status& status);

// The status with words before its message, and all else of it.
absl::Status WithPrefix(const absl::Status& status, const std::string& prefix);

}  // namespace linserve
