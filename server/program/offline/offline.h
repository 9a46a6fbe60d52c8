#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/engine.h"
#include "engine/serving_options.h"
#include "telemetry/metrics.h"

namespace linserve {

// Names one model directory, and says how and where it is computed.
struct OfflineModel {
  std::string directory;
  ServingOptions serving;
  std::string device = DeviceOptions().device;  // as PlanDevices() takes it
};

// Starts an engine for one model that refuses nothing for want of room: all that it will be given
// is in memory already.
absl::StatusOr<std::unique_ptr<Engine>> StartOffline(const OfflineModel& model,
                                                     ModelMetrics& metrics);

// Reads sequences from a file of a package's batch (package_layout.h).
absl::StatusOr<std::vector<Item>> ReadItems(const std::string& path, const Signature& signature);

// Runs all items through the engine, without a server; `progress` is told how many are done. The
// first failure is the result.
absl::StatusOr<std::vector<TensorMap>> RunAll(
    Engine& engine, std::vector<Item> items,
    const std::function<void(size_t done, size_t all)>& progress);

}  // namespace linserve
