#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "batching/padder.h"
#include "batching/request_queue.h"
#include "engine/model.h"
#include "engine/speed_estimate.h"
#include "telemetry/metrics.h"

namespace linserve {

// Batches that may be computed between the steps of one of more than `long_rows` rows, for about
// as long as its own steps take: so that short sequences are not held up by a long one, nor it by
// them. `next` gives one if there is any.
struct Overtaking {
  int64_t long_rows = 0;
  std::function<std::optional<ClosedBatch>()> next;
};

// Takes closed batches through one replica: pad, compute in steps, deliver. Used on the replica's
// own thread. The one place where a failed forward pass becomes the answer of its sequences.
class BatchRunner {
 public:
  // All must outlive the runner.
  BatchRunner(Model& model, const Padder& padder, ModelMetrics& metrics, Clock& clock,
              SpeedEstimate& speed, Overtaking overtaking = {})
      : model_(model),
        padder_(padder),
        metrics_(metrics),
        clock_(clock),
        speed_(speed),
        overtaking_(std::move(overtaking)) {}

  // Delivers every sequence of the batch exactly once, whatever happens.
  void Run(ClosedBatch closed);

 private:
  struct Progress {
    TimePoint started;
    int64_t rows = 0;
    std::chrono::nanoseconds overtaken{0};  // that others were computed in between
    std::chrono::nanoseconds copy_in{0};
    std::chrono::nanoseconds copy_out{0};
  };

  absl::StatusOr<std::vector<TensorMap>> Compute(const ClosedBatch& closed, Progress& progress);
  absl::Status Advance(Forward& forward, const ClosedBatch& closed, Progress& progress);
  void LetOvertake(std::chrono::nanoseconds share, Progress& progress);
  void DeliverResults(ClosedBatch& closed, std::vector<TensorMap> outputs,
                      const Progress& progress);
  void DeliverFailure(ClosedBatch& closed, const absl::Status& status);

  Model& model_;
  const Padder& padder_;
  ModelMetrics& metrics_;
  Clock& clock_;
  SpeedEstimate& speed_;
  const Overtaking overtaking_;
};

}  // namespace linserve
