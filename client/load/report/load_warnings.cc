#include "client/load/report/load_warnings.h"

#include <algorithm>

#include "client/load/report/load_report.h"
#include "client/load/report/percentiles.h"
#include "client/terminal/table.h"

namespace linserve {
namespace {

constexpr const char* kManyMachines = "put the load on from several machines";

std::string Percent(double share) { return Number(100 * share, 0) + " %"; }

// What the client could do at most tells whether it is the limit. Where that was not measured, it
// is if it leaves nothing of the processors to anybody.
void WarnOfLimit(const LoadReport& report, std::vector<LoadWarning>& warnings) {
  constexpr double kMostOfCeiling = 0.7;
  constexpr double kMostOfProcessors = 0.8;
  const double rate = report.Rate(report.within.requests);
  if (report.ceiling > 0 && rate > kMostOfCeiling * report.ceiling) {
    warnings.push_back({"the client is the limit",
                        "it gets " + Number(report.ceiling, 0) +
                            " requests/s out of a server that does nothing, and " +
                            Percent(rate / report.ceiling) + " of that here",
                        kManyMachines});
  } else if (report.ceiling == 0 && report.client_cpu_share() > kMostOfProcessors) {
    warnings.push_back(
        {"the client is the limit",
         "it used " + Percent(report.client_cpu_share()) + " of this machine's processors",
         kManyMachines});
  }
}

// That requests are sent late matters as far as it is part of their latency.
void WarnOfLag(const LoadReport& report, std::vector<LoadWarning>& warnings) {
  constexpr double kLeastLagNs = 1e6;
  constexpr double kMostOfLatency = 0.1;
  const auto lag = static_cast<double>(report.send_lag.Quantile(0.99));
  const auto latency = static_cast<double>(report.latency.Quantile(0.99));
  const bool matters = lag > kMostOfLatency * latency;
  if (!report.open_loop || lag <= kLeastLagNs || !matters) return;
  warnings.push_back({"requests were sent later than they should have been",
                      Number(Milliseconds(lag), 1) + " ms at p99, of a latency of " +
                          Number(Milliseconds(latency), 1) + " ms",
                      "the latency counts from when they should have been; give the client "
                      "processors of its own"});
}

void WarnOfCache(const LoadReport& report, std::vector<LoadWarning>& warnings) {
  constexpr double kMostCached = 0.01;
  const double share = report.cached_share().value_or(0);
  if (share <= kMostCached) return;
  warnings.push_back({"results came from the server's cache, since the load repeats its inputs",
                      Percent(share) + " of the sequences",
                      "what was measured is in part how fast the cache is; serve with cache_bytes "
                      "0 to measure the model"});
}

// Fewer requests are answered than are sent where the queue grows, or requests are refused.
void WarnOfRate(const LoadReport& report, std::vector<LoadWarning>& warnings) {
  constexpr uint64_t kLeastRequests = 30;
  constexpr double kLeastAnswered = 0.9;
  if (!report.open_loop || report.requests < kLeastRequests || report.within.requests == 0) return;
  const double sent = report.Rate(report.requests);
  const double answered = report.Rate(report.within.requests);
  if (answered >= kLeastAnswered * sent) return;
  warnings.push_back({"fewer requests were answered than were due",
                      Number(answered, 1) + " of " + Number(sent, 1) + " a second",
                      "the server does not reach this rate, and latencies depend on how long the "
                      "measurement is"});
}

void WarnOfAbsence(const LoadReport& report, std::vector<LoadWarning>& warnings) {
  constexpr double kLeastSeconds = 0.1;
  if (report.away_seconds < kLeastSeconds) return;
  warnings.push_back(
      {"the server could not be reached",
       "for " + Number(report.away_seconds, 1) + " of " + Number(report.seconds, 1) + " s",
       "the figures are of what it did in the rest"});
}

void WarnOfEmptiness(const LoadReport& report, std::vector<LoadWarning>& warnings) {
  if (report.requests == 0) {
    warnings.push_back(report.interrupted
                           ? LoadWarning{"interrupted before anything was measured"}
                           : LoadWarning{"no request was due within the measurement", "",
                                         "make --duration longer, or --warmup shorter"});
  }
  if (report.ok.requests > 0 && report.within.requests == 0) {
    warnings.push_back(
        {"no answer came within the measurement, so that there are no rates",
         "a request takes " + Number(static_cast<double>(report.latency.max()) / 1e9, 1) + " s",
         "measure for longer than that"});
  }
}

}  // namespace

std::vector<LoadWarning> WarningsOf(const LoadReport& report) {
  std::vector<LoadWarning> warnings;
  WarnOfLimit(report, warnings);
  WarnOfLag(report, warnings);
  WarnOfCache(report, warnings);
  WarnOfRate(report, warnings);
  WarnOfAbsence(report, warnings);
  WarnOfEmptiness(report, warnings);
  return warnings;
}

std::vector<std::string> Joined(const std::vector<NamedWarnings>& loads) {
  struct Together {
    LoadWarning warning;
    std::string details;
  };
  std::vector<Together> all;
  for (const NamedWarnings& load : loads) {
    for (const LoadWarning& warning : load.warnings) {
      auto place = std::find_if(all.begin(), all.end(), [&](const Together& other) {
        return other.warning.what == warning.what;
      });
      if (place == all.end()) place = all.insert(all.end(), {warning, ""});
      const std::string between = load.load.empty() || warning.detail.empty() ? "" : ": ";
      const std::string detail = load.load + between + warning.detail;
      if (!detail.empty()) place->details += (place->details.empty() ? "" : "; ") + detail;
    }
  }
  std::vector<std::string> texts;
  for (const Together& one : all) {
    texts.push_back(one.warning.what + (one.details.empty() ? "" : " (" + one.details + ")") +
                    (one.warning.advice.empty() ? "" : "; " + one.warning.advice));
  }
  return texts;
}

}  // namespace linserve
