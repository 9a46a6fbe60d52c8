#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "client/load_report.h"

namespace linserve {

// What a load must keep to: "p99=20ms", "mean=1.5s", "errors=0.1%".
struct Objective {
  std::string text;  // as it was given
  // Of the latency: "mean", of the requests that were answered; "p50", "p90", "p95", "p99", "p99.9"
  // or "max", of all, those that failed taking longer than any time. "errors": the share of
  // requests that did not answer every sequence.
  std::string measure;
  double most = 0;  // nanoseconds, or a share of 1

  // INVALID_ARGUMENT says what was expected.
  static absl::StatusOr<Objective> Parse(const std::string& text);

  // Infinite where too many failed.
  double Measured(const LoadReport& report) const;
  // Not by a load that measured nothing.
  bool Met(const LoadReport& report) const;
  // "p99=20ms: missed, 31.20 ms"
  std::string Verdict(const LoadReport& report) const;
};

}  // namespace linserve
