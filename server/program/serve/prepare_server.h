#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/sessions/session_budget.h"
#include "models/devices.h"
#include "program/serve/config.h"
#include "repository/repository.h"
#include "repository/repository_scan.h"
#include "rpc/grpc_server.h"
#include "telemetry/metrics.h"

namespace linserve {

// Holds what is there before models are loaded and callers let in.
struct Prepared {
  std::vector<ModelDirectory> found;
  std::vector<PassedOver> passed_over;
  DevicePlan devices;
  std::shared_ptr<SessionBudget> sessions;
};

// Looks for models and devices, and plans processors and memory: what was planned is put in the
// place of what the configuration leaves open. It is called before anything else of LibTorch: see
// OpenDevicePlugin().
absl::StatusOr<Prepared> PrepareServer(Config& config, Metrics& metrics);

// Starts the gRPC side, which is not ready yet. The arguments must outlive it.
absl::StatusOr<std::shared_ptr<GrpcServer>> StartGrpc(const Config& config,
                                                      ModelRepository& repository,
                                                      Metrics& metrics);

}  // namespace linserve
