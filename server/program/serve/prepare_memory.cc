#include "program/serve/prepare_memory.h"

#include <cstdint>
#include <string>

#include "core/system/memory.h"
#include "program/option_flags.h"
#include "program/serve/load_served.h"
#include "program/serve/memory_plan.h"
#include "telemetry/log.h"
#include "telemetry/process_stat.h"

namespace linserve {
namespace {

// Once it serves, the process takes so much more than now: threads, connections, what malloc keeps.
constexpr int64_t kServing = 64 << 20;

void Tell(const MemoryPlan& plan, Metrics& metrics) {
  metrics.SetMemoryPlan(MemoryPart::kProgram, plan.program);
  metrics.SetMemoryPlan(MemoryPart::kWeights, plan.weights);
  metrics.SetMemoryPlan(MemoryPart::kInflight, plan.inflight);
  metrics.SetMemoryPlan(MemoryPart::kSessions, plan.sessions);
  metrics.SetMemoryPlan(MemoryPart::kCache, plan.cache);
  metrics.SetMemoryPlan(MemoryPart::kScratch, plan.scratch);
  const auto shown = [](int64_t bytes) { return FormatBytes(static_cast<double>(bytes)); };
  Log(LogLevel::kInfo, "memory plan",
      {{"limit", shown(plan.limit)},
       {"program", shown(plan.program)},
       {"weights", shown(plan.weights)},
       {"inflight", shown(plan.inflight)},
       {"sessions", shown(plan.sessions)},
       {"cache", shown(plan.cache)},
       {"scratch", shown(plan.scratch)}});
  if (!plan.warning.empty()) {
    Log(LogLevel::kWarning, "memory is short", {{"because", plan.warning}});
  }
}

}  // namespace

std::shared_ptr<SessionBudget> PrepareMemory(Config& config,
                                             const std::vector<ModelDirectory>& found,
                                             const DevicePlan& devices, Metrics& metrics) {
  const bool on_host = devices.accelerators() == 0;
  const auto chosen = config.repository.versions.Choose(found);
  std::vector<int64_t> models;
  int64_t cache = 0;
  for (const ModelDirectory& directory : chosen) {
    if (on_host) models.push_back(WeightBytesOf(directory, config, devices));
    const auto serving = ServingOptionsFor(directory.path, config.serving);
    cache += serving.ok() ? serving->cache_bytes : 0;
  }
  const auto process = ReadProcessStat();
  const double resident = process ? process->resident_bytes : 0;
  const MemoryPlan plan =
      PlanMemory(MemoryBytes(), kServing + static_cast<int64_t>(resident), models,
                 {.inflight = config.grpc.inflight.max_bytes,
                  .sessions = config.serving.max_session_bytes,
                  .weights = on_host ? config.repository.max_model_bytes : 0,
                  .cache = cache});
  Tell(plan, metrics);
  config.grpc.inflight.max_bytes = plan.inflight;
  config.serving.max_session_bytes = plan.sessions;
  if (on_host) config.repository.max_model_bytes = plan.weights;
  return std::make_shared<SessionBudget>(plan.sessions, config.max_session_bytes_per_caller);
}

}  // namespace linserve
