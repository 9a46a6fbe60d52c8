#include "telemetry/model_statistics.h"

namespace linserve {

void ComputeTotals::Add(const Timing& timing) {
  input.Add(timing.batch + timing.copy_in);
  infer.Add(timing.compute - timing.copy_in - timing.copy_out);
  output.Add(timing.copy_out);
}

void ModelStatistics::Succeeded(const Timing& last, uint64_t sequences,
                                std::chrono::nanoseconds total) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  MutexLock lock(mutex_);
  figures_.last_inference_ms =
      static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
  figures_.inferences += sequences;
  figures_.success.Add(total);
  figures_.queue.Add(last.queue);
  figures_.compute.Add(last);
}

void ModelStatistics::Failed(std::chrono::nanoseconds total) {
  MutexLock lock(mutex_);
  figures_.fail.Add(total);
}

void ModelStatistics::LookedUp(bool hit, std::chrono::nanoseconds time) {
  MutexLock lock(mutex_);
  (hit ? figures_.cache_hit : figures_.cache_miss).Add(time);
}

void ModelStatistics::Executed(const Timing& timing) {
  MutexLock lock(mutex_);
  ++figures_.executions;
  figures_.passes[static_cast<uint64_t>(timing.batch_sequences)].Add(timing);
}

ModelFigures ModelStatistics::Read() const {
  MutexLock lock(mutex_);
  return figures_;
}

}  // namespace linserve
