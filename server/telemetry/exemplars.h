#pragma once

#include <map>
#include <string>
#include <vector>

namespace linserve {

// Names the trace of a request as an example of those that a bucket counts.
struct Exemplar {
  std::string trace_id;  // "": there is none
  double value = 0;
  double unix_time = 0;  // in seconds
};

// Holds the exemplars of histograms: by the family's name and the labels of a series, one for each
// bucket.
using SeriesLabels = std::map<std::string, std::string>;
using Exemplars = std::map<std::string, std::map<SeriesLabels, std::vector<Exemplar>>>;

}  // namespace linserve
