#include "client/load/load_trace.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "client/files/inputs.h"
#include "core/status/retry_delay.h"

namespace linserve {
namespace {

// Times may count from 1970: as nanoseconds they fit 64 bits.
constexpr double kMostSeconds = 9e9;

}  // namespace

absl::StatusOr<std::vector<TracedRequest>> ParseTrace(const std::string& text) {
  std::vector<TracedRequest> trace;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    const size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string::npos || line[begin] == '#') continue;
    std::istringstream words(line);
    double seconds = -1;
    int64_t length = 0;
    std::string rest;
    const bool read = static_cast<bool>(words >> seconds >> length) && !(words >> rest);
    if (!read || !(seconds >= 0 && seconds <= kMostSeconds) || length < 1) {
      return absl::InvalidArgumentError("line " + std::to_string(number) + " of the trace is \"" +
                                        line.substr(0, 60) +
                                        "\", expected SECONDS LENGTH, such as 0.25 128");
    }
    trace.push_back({std::chrono::nanoseconds(std::llround(seconds * 1e9)), length});
    if (trace.size() > 1 && trace.back().time < trace[trace.size() - 2].time) {
      return absl::InvalidArgumentError("line " + std::to_string(number) +
                                        " of the trace is earlier than the one before it; expected "
                                        "the order of their times");
    }
  }
  if (trace.empty()) return absl::InvalidArgumentError("the trace has no requests");
  const std::chrono::nanoseconds first = trace[0].time;
  for (TracedRequest& request : trace) request.time -= first;
  return trace;
}

double MeanRate(const std::vector<TracedRequest>& trace) {
  const double seconds = std::chrono::duration<double>(trace.back().time).count();
  return seconds > 0 ? static_cast<double>(trace.size() - 1) / seconds : 0;
}

absl::StatusOr<std::vector<TracedRequest>> ReadTrace(const std::string& path) {
  const auto text = ReadWhole(path);
  if (!text.ok()) return text.status();
  auto trace = ParseTrace(*text);
  if (trace.ok()) return trace;
  return WithPrefix(trace.status(), path + ": ");
}

}  // namespace linserve
