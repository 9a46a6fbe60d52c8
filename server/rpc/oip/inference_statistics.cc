#include "rpc/oip/inference_statistics.h"

namespace linserve {
namespace {

void Fill(const DurationTotal& total, inference::StatisticDuration& message) {
  message.set_count(total.count);
  message.set_ns(static_cast<uint64_t>(total.time.count()));
}

template <typename Message>
void Fill(const ComputeTotals& totals, Message& message) {
  Fill(totals.input, *message.mutable_compute_input());
  Fill(totals.infer, *message.mutable_compute_infer());
  Fill(totals.output, *message.mutable_compute_output());
}

}  // namespace

void FillStatistics(const ServedModel& model, inference::ModelStatistics& message) {
  const ModelFigures figures = model.engine->metrics().statistics().Read();
  message.set_name(model.name);
  message.set_version(std::to_string(model.version));
  message.set_last_inference(figures.last_inference_ms);
  message.set_inference_count(figures.inferences);
  message.set_execution_count(figures.executions);
  inference::InferStatistics& requests = *message.mutable_inference_stats();
  Fill(figures.success, *requests.mutable_success());
  Fill(figures.fail, *requests.mutable_fail());
  Fill(figures.queue, *requests.mutable_queue());
  Fill(figures.compute, requests);
  Fill(figures.cache_hit, *requests.mutable_cache_hit());
  Fill(figures.cache_miss, *requests.mutable_cache_miss());
  for (const auto& [sequences, totals] : figures.passes) {
    inference::InferBatchStatistics& passes = *message.add_batch_stats();
    passes.set_batch_size(sequences);
    Fill(totals, passes);
  }
  inference::MemoryUsage& memory = *message.add_memory_usage();
  const ModelInfo& info = model.engine->info();
  memory.set_type(info.device == "cpu" ? "CPU" : "GPU");
  memory.set_byte_size(static_cast<uint64_t>(model.engine->weight_bytes()));
}

}  // namespace linserve
