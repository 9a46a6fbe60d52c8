#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace linserve {

// RESOURCE_EXHAUSTED of what is asked for beside what there is ("3 waiting", "2 in flight").
inline absl::Status LimitMet(const std::string& there_is, int64_t asked, const char* limit,
                             int64_t value) {
  return absl::ResourceExhaustedError(
      there_is + " and " + std::to_string(asked) + " asked for exceed " + limit + " = " +
      std::to_string(value) + "; " + (asked > value ? "send less at once" : "try again later"));
}

}  // namespace linserve
