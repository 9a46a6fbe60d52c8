#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "engine/session_budget.h"
#include "models/devices.h"
#include "program/serve/config.h"
#include "repository/model_manager.h"
#include "telemetry/metrics.h"

namespace linserve {

// Holds what all models of a server are loaded with.
struct LoadContext {
  const Config& config;
  const DevicePlan& devices;
  Metrics& metrics;
  std::shared_ptr<SessionBudget> sessions;
};

// Loads a version and warms it up. It asks for room before it reads the weights.
absl::StatusOr<std::unique_ptr<ServedModel>> LoadServed(const ModelDirectory& directory,
                                                        const LoadContext& context,
                                                        const ModelManager::Room& room,
                                                        std::function<void()> on_ready_change);

// Returns how many bytes the weights of all replicas will take; 0 if the model cannot be loaded.
int64_t WeightBytesOf(const ModelDirectory& directory, const Config& config,
                      const DevicePlan& devices);

}  // namespace linserve
