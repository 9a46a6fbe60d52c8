#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "access/access.h"
#include "core/threads/step_pool.h"
#include "repository/model_manager.h"
#include "repository/repository.h"
#include "serving/inflight.h"
#include "serving/load_reporter.h"
#include "serving/rpc_limits.h"
#include "serving/stream_registry.h"
#include "telemetry/metrics.h"

namespace linserve {

// Holds what every call of the services shares.
struct ServiceContext {
  ModelRepository& repository;
  Metrics& metrics;
  RpcLimits limits;
  std::string version;  // the server's version
  std::unique_ptr<Access> access;
  std::shared_ptr<Inflight> inflight;
  StepPool tokenizers;  // on their threads texts become token ids
  StreamRegistry streams{};
  LoadReporter load{repository};
  // Loads and unloads models for callers; null if callers may not.
  std::atomic<ModelManager*> manager{nullptr};
  std::atomic<bool> ready{false};
  // Calls should go elsewhere from now on, and are still taken; with `draining` they are not.
  std::atomic<bool> leaving{false};
  std::atomic<bool> draining{false};
};

}  // namespace linserve
