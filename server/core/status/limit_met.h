#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "core/status/retry_delay.h"

namespace linserve {

// Returns RESOURCE_EXHAUSTED: what is asked for, beside what there is ("3 waiting", "2 in flight"),
// exceeds the limit.
inline absl::Status LimitMet(const std::string& there_is, int64_t asked, const char* limit,
                             int64_t value) {
  const bool ever_fits = asked <= value;
  absl::Status status = absl::ResourceExhaustedError(
      there_is + " and " + std::to_string(asked) + " asked for exceed " + limit + " = " +
      std::to_string(value) + "; " + (ever_fits ? "try again later" : "send less at once"));
  return ever_fits ? status : NeverFits(std::move(status));
}

}  // namespace linserve
