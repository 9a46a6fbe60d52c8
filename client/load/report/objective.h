#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "client/load/report/load_report.h"

namespace linserve {

// Says what a load must keep to: "p99=20ms", "mean=1.5s", "errors=0.1%".
struct Objective {
  std::string text;  // as it was given
  // Names what is measured. For the latency it is "mean", of the requests that were answered, or
  // "p50", "p90", "p95", "p99", "p99.9" or "max", of all requests, where those that failed take
  // longer than any time. "errors" is the share of requests that did not answer every sequence.
  std::string measure;
  double most = 0;  // nanoseconds, or a share of 1

  // Parses an objective. INVALID_ARGUMENT says what was expected.
  static absl::StatusOr<Objective> Parse(const std::string& text);

  // Returns what the load measured: infinite where too many requests failed.
  double Measured(const LoadReport& report) const;
  // Returns whether the load keeps to the objective. A load that measured nothing does not.
  bool Met(const LoadReport& report) const;
  // Writes "p99=20ms: missed, 31.20 ms".
  std::string Verdict(const LoadReport& report) const;
};

}  // namespace linserve
