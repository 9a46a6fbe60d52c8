#include "telemetry/instruments.h"

namespace linserve {

std::vector<prometheus::MetricFamily> TritonMetrics(const ModelFigures& figures, double queued,
                                                    const prometheus::Labels& labels) {
  std::vector<prometheus::MetricFamily> families;
  const auto count = [&](const std::string& name, const std::string& help, uint64_t value) {
    families.push_back(
        Family(name, help, prometheus::MetricType::Counter, static_cast<double>(value), labels));
  };
  const auto time = [&](const std::string& name, const std::string& help,
                        const DurationTotal& total) {
    count("nv_inference_" + name + "_duration_us", help,
          static_cast<uint64_t>(std::chrono::round<std::chrono::microseconds>(total.time).count()));
  };
  count("nv_inference_request_success", "Requests that succeeded.", figures.success.count);
  count("nv_inference_request_failure", "Requests that failed.", figures.fail.count);
  families.back().metric.front().label.push_back({"reason", "OTHER"});
  uint64_t computed = 0;
  for (const auto& [sequences, passes] : figures.passes) computed += sequences * passes.infer.count;
  count("nv_inference_count", "Sequences that were computed.", computed);
  count("nv_inference_exec_count", "Forward passes.", figures.executions);
  time("request", "Time of the requests that succeeded, in microseconds.", figures.success);
  time("queue", "Their time in the queue.", figures.queue);
  time("compute_input", "Time of laying out their batches.", figures.compute.input);
  time("compute_infer", "Time of their forward passes.", figures.compute.infer);
  time("compute_output", "Time of making their results.", figures.compute.output);
  families.push_back(Family("nv_inference_pending_request_count",
                            "Requests with sequences in the queue.", prometheus::MetricType::Gauge,
                            queued, labels));
  count("nv_cache_num_hits_per_model", "Sequences that the cache had.", figures.cache_hit.count);
  count("nv_cache_num_misses_per_model", "Sequences that the cache did not have.",
        figures.cache_miss.count);
  return families;
}

}  // namespace linserve
