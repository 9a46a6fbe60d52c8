#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/load_subject.h"
#include "client/objective.h"

namespace linserve {

// Where a measurement is written to; empty: nowhere.
struct LoadOutputs {
  std::string json;  // -: standard output, in place of the text
  std::string html;
  std::string percentiles;
};

// The subjects have as many steps each, but where the load was interrupted. REQUIRES: a step of the
// first.
std::string ToText(const std::vector<LoadSubject>& subjects,
                   const std::vector<Objective>& objectives);

// Of one subject what ToJson() of its report or its sweep gives; of several
// {"subjects": [{"name", "report"}, ...]}.
std::string ToJson(const std::vector<LoadSubject>& subjects,
                   const std::vector<Objective>& objectives);

// A page that needs nothing else: what was found, a table of the loads, and charts of throughput and
// latency, of both over time, of where the time goes, of percentiles, and of the batches that the
// server made. `what` was measured stands at its head.
std::string ToHtml(const std::vector<LoadSubject>& subjects,
                   const std::vector<Objective>& objectives, const std::string& what);

// The text to standard output, and what is asked for. NOT_FOUND: a file cannot be written.
absl::Status WriteLoad(const std::vector<LoadSubject>& subjects,
                       const std::vector<Objective>& objectives, const std::string& what,
                       const LoadOutputs& outputs);

}  // namespace linserve
