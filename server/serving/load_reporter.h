#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "core/threads/clock.h"
#include "core/threads/mutex.h"
#include "repository/repository.h"

namespace linserve {

// Says how loaded the server is, in the terms of gRFC A51 (xds.data.orca.v3.OrcaLoadReport):
// utilizations are shares, rates are requests a second.
struct ServerLoad {
  double cpu_utilization = 0;
  double mem_utilization = 0;
  double application_utilization = 0;  // the share of the replicas' time in which they computed
  double rps_fractional = 0;
  double eps = 0;
  double queue_delay_seconds = 0;  // of the model with the longest delay
};

// Reports the load to callers that balance by it. Thread-safe.
class LoadReporter {
 public:
  // `repository` and `clock` must outlive the reporter.
  explicit LoadReporter(const ModelRepository& repository, Clock& clock = SteadyClock());

  // Reports on the last 200 ms, or on the longer time in which nobody asked, and returns what
  // `encode` has made of the report. It is called once for each report, so that it must be the same
  // with each call.
  std::string Encoded(absl::FunctionRef<std::string(const ServerLoad&)> encode);

 private:
  // Holds what was counted of a version: of requests since its directory was found, even while it
  // was not served, of time since it was loaded.
  struct VersionTotals {
    std::chrono::nanoseconds computing{0};  // time of all replicas
    uint64_t answered = 0;                  // requests
    uint64_t failed = 0;
  };
  struct Totals {
    TimePoint time;
    double cpu_seconds = 0;
    double resident_bytes = 0;
    std::map<std::pair<std::string, int64_t>, VersionTotals> versions;  // that are served
    int64_t replicas = 0;                                               // that compute apart
    std::chrono::nanoseconds queue_delay{0};  // of the model with the longest delay
  };

  Totals Count() const;
  ServerLoad Between(const Totals& before, const Totals& now) const;

  const ModelRepository& repository_;
  Clock& clock_;
  const double processors_;    // processors that the server may use, read once
  const double memory_bytes_;  // memory that the server may use, read once

  Mutex mutex_;
  Totals last_ ABSL_GUARDED_BY(mutex_);
  ServerLoad report_ ABSL_GUARDED_BY(mutex_);
  std::string encoded_ ABSL_GUARDED_BY(mutex_);  // report_; empty: nobody has asked for it yet
};

}  // namespace linserve
