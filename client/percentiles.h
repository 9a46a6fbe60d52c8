#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/histogram.h"

namespace linserve {

// A value that so large a share of all do not exceed.
struct Percentile {
  double fraction;
  uint64_t value;
  uint64_t count;  // of values up to it
};

// Five for each halving of what is left: 0, 0.1, ... 0.5, 0.55, ... 0.75, ... up to the largest
// value, at 1. Empty if nothing was recorded.
std::vector<Percentile> Percentiles(const Histogram& histogram);

// The same in the format of HdrHistogram's percentile tables, which its plotters read; values in
// milliseconds.
std::string PercentileTable(const Histogram& nanoseconds);

}  // namespace linserve
