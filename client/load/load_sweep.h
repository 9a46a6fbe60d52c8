#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "client/load/report/load_report.h"
#include "client/load/report/load_warnings.h"
#include "client/load/report/objective.h"

namespace linserve {

// Holds one load of several that grow.
struct SweepStep {
  double load = 0;  // requests a second, or in flight
  LoadReport report;
};

// Returns the load as tables name it.
std::string Load(const SweepStep& step);

// Returns the step with the most throughput for its mean latency (Kleinrock's power): beyond it,
// latency grows faster than throughput. None if nothing was answered.
std::optional<size_t> KneeOf(const std::vector<SweepStep>& steps);

// Writes a table of the steps, then the knee and the largest load that keeps to the objectives.
std::string ToText(const std::vector<SweepStep>& steps, const std::vector<Objective>& objectives);

// Writes {"steps": [...], "knee": load, "objectives": [...], "best": the largest load that keeps to
// them}.
nlohmann::json JsonOf(const std::vector<SweepStep>& steps,
                      const std::vector<Objective>& objectives);

// Returns the warnings of each step, with its load where there are several, and the name of the
// subject if there is one.
std::vector<NamedWarnings> WarningsOf(const std::vector<SweepStep>& steps,
                                      const std::string& subject = "");

// Says that no request was answered, or that more than half failed; "" if neither is so.
std::string FailureOf(const std::vector<SweepStep>& steps);

// Returns the largest load before the first that misses an objective; nullptr if that is the first
// one.
const SweepStep* BestOf(const std::vector<SweepStep>& steps,
                        const std::vector<Objective>& objectives);

}  // namespace linserve
