#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace linserve {

// Holds a request of a recorded load: when it came since the first one, and how long its sequence
// was.
struct TracedRequest {
  std::chrono::nanoseconds time;
  int64_t length;
};

// Parses lines of "SECONDS LENGTH", in the order of their times; what begins with # is a comment.
// The first time becomes 0. INVALID_ARGUMENT names the line, what stands there and what was
// expected.
absl::StatusOr<std::vector<TracedRequest>> ParseTrace(const std::string& text);

// Reads and parses a trace from a file. Returns NOT_FOUND if it cannot be read.
absl::StatusOr<std::vector<TracedRequest>> ReadTrace(const std::string& path);

// Returns the requests a second over the whole trace. REQUIRES: at least one request.
double MeanRate(const std::vector<TracedRequest>& trace);

}  // namespace linserve
