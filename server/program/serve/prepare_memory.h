#pragma once

#include <memory>
#include <vector>

#include "engine/sessions/session_budget.h"
#include "models/devices.h"
#include "program/serve/config.h"
#include "repository/repository_scan.h"
#include "telemetry/metrics.h"

namespace linserve {

// Plans the memory for the models that were found. The plan is logged, shown in the metrics, and
// put in the place of what the options leave open. Returns the budget of all sessions.
std::shared_ptr<SessionBudget> PrepareMemory(Config& config,
                                             const std::vector<ModelDirectory>& found,
                                             const DevicePlan& devices, Metrics& metrics);

}  // namespace linserve
