#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/load/report/histogram.h"

namespace linserve {

// Returns a time as it is told: histograms count nanoseconds.
inline double Milliseconds(double nanoseconds) { return nanoseconds / 1e6; }

// Holds a value that so large a share of all do not exceed.
struct Percentile {
  double fraction;
  uint64_t value;
  uint64_t count;  // number of values up to this one
};

// Returns five percentiles for each halving of what is left: 0, 0.1, ... 0.5, 0.55, ... 0.75, ...
// up to the largest value, at 1. Empty if nothing was recorded.
std::vector<Percentile> Percentiles(const Histogram& histogram);

// Writes the percentiles in the format of HdrHistogram's tables, which its plotters read; values
// are in milliseconds.
std::string PercentileTable(const Histogram& nanoseconds);

}  // namespace linserve
