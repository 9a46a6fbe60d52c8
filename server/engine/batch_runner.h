#pragma once

#include "batching/padder.h"
#include "batching/request_queue.h"
#include "engine/model.h"
#include "engine/speed_estimate.h"
#include "telemetry/metrics.h"

namespace linserve {

// Takes closed batches through one replica: pad, compute in steps, deliver. Used on the replica's
// own thread. The one place where a failed forward pass becomes the answer of its sequences.
class BatchRunner {
 public:
  // All must outlive the runner.
  BatchRunner(Model& model, const Padder& padder, ModelMetrics& metrics, Clock& clock,
              SpeedEstimate& speed)
      : model_(model), padder_(padder), metrics_(metrics), clock_(clock), speed_(speed) {}

  // Delivers every sequence of the batch exactly once, whatever happens.
  void Run(ClosedBatch closed);

 private:
  struct Progress {
    TimePoint started;
    int64_t rows = 0;
  };

  absl::StatusOr<std::vector<TensorMap>> Compute(const ClosedBatch& closed, Progress& progress);
  absl::Status Advance(Forward& forward, const ClosedBatch& closed);
  void DeliverResults(ClosedBatch& closed, std::vector<TensorMap> outputs,
                      const Progress& progress);
  void DeliverFailure(ClosedBatch& closed, const absl::Status& status);

  Model& model_;
  const Padder& padder_;
  ModelMetrics& metrics_;
  Clock& clock_;
  SpeedEstimate& speed_;
};

}  // namespace linserve
