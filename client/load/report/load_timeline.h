#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "client/load/report/histogram.h"

namespace linserve {

// Shows how a measurement went over its time, in equal intervals: of a second, and of twice that
// each time there would be more than kMostIntervals. An answer counts where it came.
class LoadTimeline {
 public:
  static constexpr size_t kMostIntervals = 240;

  struct Interval {
    uint64_t answered = 0;  // requests, in full
    uint64_t failed = 0;
    uint64_t sequences = 0;      // OK sequences
    uint64_t computed = 0;       // those of them that were in a batch
    double batch_sequences = 0;  // sum of the sizes of their batches
    Histogram latency;           // of the answered requests, in nanoseconds
  };

  // Returns the interval of a time; `when` counts from when the measurement began.
  Interval& At(std::chrono::nanoseconds when);

  std::chrono::nanoseconds interval() const { return interval_; }
  const std::vector<Interval>& intervals() const { return intervals_; }

 private:
  std::chrono::nanoseconds interval_ = std::chrono::seconds(1);
  std::vector<Interval> intervals_;
};

}  // namespace linserve
