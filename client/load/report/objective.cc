#include "client/load/report/objective.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>

#include "core/strings/quote.h"

namespace linserve {
namespace {

constexpr const char* kErrors = "errors";

// Returns the quantile of this name; nullptr if there is none.
const double* QuantileOf(const std::string& name) {
  const auto found = std::find_if(kQuantiles.begin(), kQuantiles.end(),
                                  [&](const auto& quantile) { return name == quantile.first; });
  return found == kQuantiles.end() ? nullptr : &found->second;
}

}  // namespace

absl::StatusOr<Objective> Objective::Parse(const std::string& text) {
  static const std::map<std::string, double> times = {{"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
  absl::Status unclear = absl::InvalidArgumentError(
      "objective " + Quoted(text) +
      ": expected mean, p50, p90, p95, p99, p99.9 or max and a time (p99=20ms, with us, ms or s), "
      "or a share of errors (errors=0.1%)");
  const size_t equals = text.find('=');
  if (equals == std::string::npos) return unclear;
  Objective objective{.text = text, .measure = text.substr(0, equals)};
  const std::string value = text.substr(equals + 1);
  char* end = nullptr;
  const double number = std::strtod(value.c_str(), &end);
  const std::string unit = end;
  if (end == value.c_str() || !(number >= 0 && number < 1e9)) return unclear;
  if (objective.measure == kErrors) {
    if (unit != "%") return unclear;
    objective.most = number / 100;
    return objective;
  }
  const bool known = objective.measure == "mean" || objective.measure == "max" ||
                     QuantileOf(objective.measure) != nullptr;
  if (!known || !times.contains(unit)) return unclear;
  objective.most = number * times.at(unit);
  return objective;
}

double Objective::Measured(const LoadReport& report) const {
  if (measure == kErrors) {
    return report.requests == 0
               ? 1
               : static_cast<double>(report.failed()) / static_cast<double>(report.requests);
  }
  if (measure == "mean") return report.latency.mean();
  const double fraction = measure == "max" ? 1 : *QuantileOf(measure);
  const double of_answered = fraction * static_cast<double>(report.requests) /
                             static_cast<double>(std::max<uint64_t>(report.ok.requests, 1));
  if (of_answered > 1) return std::numeric_limits<double>::infinity();
  return measure == "max" ? static_cast<double>(report.latency.max())
                          : static_cast<double>(report.latency.Quantile(of_answered));
}

bool Objective::Met(const LoadReport& report) const {
  return report.requests > 0 && (measure == kErrors || report.ok.requests > 0) &&
         Measured(report) <= most;
}

std::string Objective::Verdict(const LoadReport& report) const {
  const double measured = Measured(report);
  char value[64];
  if (measure == kErrors) {
    std::snprintf(value, sizeof(value), "%.3g %%", 100 * measured);
  } else if (std::isinf(measured) || report.ok.requests == 0) {
    std::snprintf(value, sizeof(value), "%llu of %llu requests failed",
                  static_cast<unsigned long long>(report.failed()),
                  static_cast<unsigned long long>(report.requests));
  } else {
    std::snprintf(value, sizeof(value), "%.2f ms", measured / 1e6);
  }
  const double* const fraction = QuantileOf(measure);
  const bool told = fraction == nullptr || Tells(report.requests, *fraction);
  return text + ": " + (Met(report) ? "met, " : "missed, ") + value +
         (told ? "" : ", of too few requests to tell (" + std::to_string(report.requests) + ")");
}

}  // namespace linserve
