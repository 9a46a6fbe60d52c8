#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "absl/status/status.h"

namespace linserve {

// Returns the status with a detail that tells the caller to try again after this time and not
// before; as it is, where that would be in vain (NeverFits).
absl::Status RetryAfter(absl::Status status, std::chrono::milliseconds delay);

// Returns the delay that RetryAfter() gave the status, if it gave any.
std::optional<std::chrono::milliseconds> RetryDelayOf(const absl::Status& status);

// Returns the status with a detail that says that trying again is in vain: what is asked for
// exceeds what there ever is.
absl::Status NeverFits(absl::Status status);
bool IsNeverFits(const absl::Status& status);

// Returns the status with words before its message; all else in it is kept.
absl::Status WithPrefix(const absl::Status& status, const std::string& prefix);

}  // namespace linserve
