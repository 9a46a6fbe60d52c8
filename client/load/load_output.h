#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/load/load_subject.h"
#include "client/load/report/objective.h"

namespace linserve {

// Says where a measurement is written to; empty: nowhere.
struct LoadOutputs {
  bool sweep = false;  // several loads were asked for, of which one may have been measured
  std::string json;    // -: standard output, in place of the text
  std::string html;
  // Percentiles of several loads are written to a file each, with "-LOAD" before its extension;
  // those of several subjects with the subject's number.
  std::string percentiles;
};

// Writes a report for people. The subjects have as many steps each, but where the load was
// interrupted. REQUIRES: the first subject has a step.
std::string ToText(const std::vector<LoadSubject>& subjects,
                   const std::vector<Objective>& objectives);

// Writes a report as JSON, with `what` was measured. For one subject it is the subject's sweep, or
// else its only load with the objectives and whether it meets them; for several it is {"subjects":
// [{"name", "report"}, ...]}.
std::string ToJson(const std::vector<LoadSubject>& subjects,
                   const std::vector<Objective>& objectives, const std::string& what, bool sweep);

// Writes a page that needs nothing else: what was found, a table of the loads, and charts of
// throughput and latency, of both over time, of where the time goes, of percentiles, and of the
// batches that the server made. `what` was measured stands at its head.
std::string ToHtml(const std::vector<LoadSubject>& subjects,
                   const std::vector<Objective>& objectives, const std::string& what);

// Returns NOT_FOUND if one of the files cannot be written, which is better known before a long
// measurement.
absl::Status CheckOutputs(const LoadOutputs& outputs);

// Writes the text to standard output, and the files that are asked for. Returns NOT_FOUND if a file
// cannot be written.
absl::Status WriteLoad(const std::vector<LoadSubject>& subjects,
                       const std::vector<Objective>& objectives, const std::string& what,
                       const LoadOutputs& outputs);

}  // namespace linserve
