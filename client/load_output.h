#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/load_subject.h"
#include "client/objective.h"

namespace linserve {

// Where a measurement is written to; empty: nowhere.
struct LoadOutputs {
  bool sweep = false;  // several loads were asked for, of which one may have been measured
  std::string json;    // -: standard output, in place of the text
  std::string html;
  // Of several loads a file each, with "-LOAD" before its extension; of several subjects likewise,
  // with the subject's number.
  std::string percentiles;
};

// The subjects have as many steps each, but where the load was interrupted. REQUIRES: a step of the
// first.
std::string ToText(const std::vector<LoadSubject>& subjects,
                   const std::vector<Objective>& objectives);

// Of one subject its sweep, or else its only load with the objectives and whether it meets them; of
// several {"subjects": [{"name", "report"}, ...]}. With `what` was measured.
std::string ToJson(const std::vector<LoadSubject>& subjects,
                   const std::vector<Objective>& objectives, const std::string& what, bool sweep);

// A page that needs nothing else: what was found, a table of the loads, and charts of throughput
// and latency, of both over time, of where the time goes, of percentiles, and of the batches that
// the server made. `what` was measured stands at its head.
std::string ToHtml(const std::vector<LoadSubject>& subjects,
                   const std::vector<Objective>& objectives, const std::string& what);

// NOT_FOUND: one of the files cannot be written, which is better known before a long measurement.
absl::Status CheckOutputs(const LoadOutputs& outputs);

// The text to standard output, and what is asked for. NOT_FOUND: a file cannot be written.
absl::Status WriteLoad(const std::vector<LoadSubject>& subjects,
                       const std::vector<Objective>& objectives, const std::string& what,
                       const LoadOutputs& outputs);

}  // namespace linserve
