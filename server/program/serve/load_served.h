#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "engine/sessions/session_budget.h"
#include "models/devices.h"
#include "models/model_loader.h"
#include "program/serve/config.h"
#include "program/serve/live_config.h"
#include "repository/model_manager.h"
#include "repository/repository.h"
#include "telemetry/metrics.h"

namespace linserve {

// Holds what all models of a server are loaded with.
struct LoadContext {
  const LiveConfig& config;
  const DevicePlan& devices;
  Metrics& metrics;
  std::shared_ptr<SessionBudget> sessions;
};

// Loads a version and warms it up. It asks for room before it reads the weights.
absl::StatusOr<std::unique_ptr<ServedModel>> LoadServed(const ModelDirectory& directory,
                                                        const LoadContext& context,
                                                        const ModelManager::Room& room,
                                                        std::function<void()> on_ready_change);

// Says how a version would be served, and that its files fit.
struct CheckedModel {
  ModelInfo info;
  ModelWeights weights;  // of all replicas
  ReplicaPlan replicas;
  bool text = false;  // it takes texts
};

// Does all that LoadServed() does short of reading the weights. Its errors are those of that.
absl::StatusOr<CheckedModel> CheckServed(const ModelDirectory& directory, const Config& config,
                                         const DevicePlan& devices);

// Gives the queues of all models that are served the limits that the configuration, and what their
// own config.json has for "serving", say.
void SetQueueLimits(const ModelRepository& repository, const Config& config);

// Returns how many bytes the weights of all replicas will take; 0 if the model cannot be loaded.
int64_t WeightBytesOf(const ModelDirectory& directory, const Config& config,
                      const DevicePlan& devices);

}  // namespace linserve
