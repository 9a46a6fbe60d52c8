#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "client/load_report.h"
#include "client/objective.h"

namespace linserve {

// One load of several that grow.
struct SweepStep {
  double load = 0;  // requests a second, or in flight
  LoadReport report;
};

// The load, as tables name it.
std::string Load(const SweepStep& step);

// The step with the most throughput for its mean latency (Kleinrock's power): beyond it, requests
// wait for longer than their number grows. REQUIRES: a step.
size_t KneeOf(const std::vector<SweepStep>& steps);

// A table of the steps, then the knee and the largest load that keeps to the objectives.
std::string ToText(const std::vector<SweepStep>& steps, const std::vector<Objective>& objectives);

// {"steps": [...], "knee": load, "objectives": [...], "best": the largest load that keeps to them}
nlohmann::json JsonOf(const std::vector<SweepStep>& steps,
                      const std::vector<Objective>& objectives);

// The largest load before the first that misses an objective; nullptr if that is the first one.
const SweepStep* BestOf(const std::vector<SweepStep>& steps,
                        const std::vector<Objective>& objectives);

}  // namespace linserve
