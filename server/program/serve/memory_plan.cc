#include "program/serve/memory_plan.h"

#include <algorithm>
#include <numeric>

#include "core/system/memory.h"

namespace linserve {
namespace {

constexpr int64_t kMebibyte = int64_t{1} << 20;

// With less than these a server refuses what is usual.
constexpr int64_t kLeastInflight = 16 * kMebibyte;
constexpr int64_t kLeastSessions = 8 * kMebibyte;
constexpr int64_t kLeastScratch = 16 * kMebibyte;

std::string Shown(int64_t bytes) { return FormatBytes(static_cast<double>(bytes)); }

std::string DoesNotFit(const MemoryPlan& plan) {
  return "the memory plan does not fit: the program takes " + Shown(plan.program) +
         ", the weights of the models " + Shown(plan.weights) + ", requests in flight " +
         Shown(plan.inflight) + ", sessions " + Shown(plan.sessions) + ", cached results " +
         Shown(plan.cache) + " and a batch " + Shown(plan.scratch) + ", together " +
         Shown(plan.total()) + " of " + Shown(plan.limit) +
         "; raise the memory limit, serve fewer models, or lower what is set of "
         "max_inflight_bytes, max_session_bytes, max_model_bytes and cache_bytes";
}

std::string NoSuccessor(const MemoryPlan& plan, int64_t weights, int64_t largest) {
  return "a new version of the largest model does not fit beside the one that it is to replace: "
         "that takes " +
         Shown(weights + largest) + " of weights, and there is room for " + Shown(plan.weights) +
         "; raise the memory limit, or unload the model before the new version is loaded";
}

}  // namespace

MemoryPlan PlanMemory(int64_t limit, int64_t program, const std::vector<int64_t>& models,
                      const MemoryOptions& options) {
  const int64_t weights = std::accumulate(models.begin(), models.end(), int64_t{0});
  const int64_t largest = models.empty() ? 0 : *std::max_element(models.begin(), models.end());
  MemoryPlan plan;
  plan.limit = limit;
  plan.program = program;
  plan.cache = options.cache;
  const int64_t set = program + options.cache + options.inflight + options.sessions;
  const int64_t free = limit - set - std::max(weights, options.weights);
  const bool with_successor = free - largest >= free / 4;
  const int64_t shared = std::max<int64_t>(0, with_successor ? free - largest : free);
  const auto share = [](int64_t option, int64_t planned, int64_t least, int64_t most) {
    return option > 0 ? option : std::clamp(planned, least, std::max(least, most));
  };
  plan.inflight = share(options.inflight, shared / 2, kLeastInflight, limit / 4);
  plan.sessions = share(options.sessions, shared / 4, kLeastSessions, limit / 8);
  plan.scratch = std::clamp(shared / 4, kLeastScratch, std::max(kLeastScratch, limit / 8));
  // What is there to be served is loaded, if it can be at all.
  const int64_t left = limit - plan.total();
  const int64_t loadable = std::min(weights, limit - program);
  plan.weights = options.weights > 0 ? options.weights : std::max({left, loadable, int64_t{1}});
  if (plan.total() > limit) {
    plan.warning = DoesNotFit(plan);
  } else if (plan.weights < weights + largest) {
    plan.warning = NoSuccessor(plan, weights, largest);
  }
  return plan;
}

}  // namespace linserve
