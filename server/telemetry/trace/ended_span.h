#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "telemetry/log.h"

namespace linserve {

using TraceTime = std::chrono::steady_clock::time_point;

// Holds a span that has ended: the time of a traced request, or of a part of its work. The keys of
// its fields are literals.
struct EndedSpan {
  std::string name{};
  std::string trace_id{};
  uint64_t id = 0;
  uint64_t parent = 0;  // 0: it has none
  // The outermost span of those that lie in each other, in whose lane the file shows it; 0: itself.
  uint64_t within = 0;
  bool of_request = false;  // it is the request's own
  TraceTime begin{};
  TraceTime end{};
  std::vector<LogField> fields{};
};

}  // namespace linserve
