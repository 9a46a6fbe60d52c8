#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "batching/clock.h"
#include "core/mutex.h"
#include "engine/repository.h"

namespace linserve {

// How loaded the server is, for callers that balance by it (gRFC A51). Thread-safe.
class LoadReporter {
 public:
  // `repository` and `clock` must outlive the reporter.
  explicit LoadReporter(const ModelRepository& repository, Clock& clock = SteadyClock());

  // A serialised xds.data.orca.v3.OrcaLoadReport of the last 200 ms, or of the longer time in which
  // nobody asked.
  std::string Report();

 private:
  // Counted since the server's start.
  struct Totals {
    TimePoint time;
    double cpu_seconds = 0;
    double resident_bytes = 0;
    std::chrono::nanoseconds computing{0};  // of all replicas
    int64_t replicas = 0;
    uint64_t answered = 0;  // requests
    uint64_t failed = 0;
    std::chrono::nanoseconds queue_delay{0};  // of the model with the longest
  };

  Totals Count() const;
  std::string Between(const Totals& before, const Totals& now) const;

  const ModelRepository& repository_;
  Clock& clock_;
  const double processors_;    // that the server may use, read once
  const double memory_bytes_;  // likewise

  Mutex mutex_;
  Totals last_ LINSERVE_GUARDED_BY(mutex_);
  std::string report_ LINSERVE_GUARDED_BY(mutex_);
};

}  // namespace linserve
