#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "batching/padder.h"
#include "batching/request_queue.h"
#include "core/threads/side_thread.h"
#include "engine/batch_delivery.h"
#include "engine/model.h"
#include "engine/speed_estimate.h"
#include "telemetry/metrics.h"

namespace linserve {

// Says who may be computed between the slices of a long pass: one that takes longer than kLongPass,
// with a sequence of more than `long_rows` rows. `next` returns a batch of at most so many rows if
// there is any.
struct Overtaking {
  int64_t long_rows = 0;
  std::function<std::optional<ClosedBatch>(int64_t most_rows)> next{};
};

// Takes closed batches through one replica: it pads, computes in steps and delivers. Used on the
// replica's own thread. A batch that fails is cut in halves, so that only those sequences fail that
// cannot be computed; this is the one place where that becomes their answer.
class BatchRunner {
 public:
  // All arguments must outlive the runner. `on_progress` is called ten times a second at most while
  // a pass is computed.
  BatchRunner(Model& model, const Padder& padder, ModelMetrics& metrics, Clock& clock,
              SpeedEstimate& speed, Overtaking overtaking = {},
              std::function<void()> on_progress = {});

  // Delivers every sequence of the batch exactly once, whatever happens. With an asynchronous model
  // the device may still be computing it when this returns: the next Run() or Finish() takes its
  // results. Run() has them delivered by another thread, since the device waits for the next batch.
  void Run(ClosedBatch closed);

  // busy() returns whether the results of a batch are still to be taken, and Finish() waits until
  // they are delivered.
  bool busy() const { return in_flight_.has_value(); }
  void Finish();

 private:
  struct Progress {
    TimePoint started;
    int64_t rows = 0;
    std::chrono::nanoseconds overtaken{0};  // time in which others were computed in between
    std::chrono::nanoseconds copy_in{0};
    std::chrono::nanoseconds forward{0};
    std::chrono::nanoseconds copy_out{0};
    TimePoint turn{};           // when the pass was last given the thread
    TimePoint reported{};       // when its callers were last told how far it is
    int64_t layers = 0;         // layers that are done
    int64_t rows_of_layer = 0;  // rows that are through the next layer
  };

  struct Running {
    ClosedBatch closed;
    bool counted = false;  // the metrics know of the batch, or of the one that it is a part of
    Progress progress{};
    int64_t tokens = 0;
    std::unique_ptr<Forward> forward{};
    std::vector<bool> departed{};  // sequences whose callers left while they were computed
    bool cut_short = false;        // not all that it began with was computed
  };

  absl::Status Launch(Running& running);
  absl::Status TryLaunch(Running& running);
  absl::Status Advance(Running& running);
  bool LookUp(Running& running);
  static bool NobodyWaits(const Running& running, TimePoint now);
  void ForgetDeparted(Running& running, TimePoint now);
  void Report(Running& running, TimePoint now);
  int64_t RowsAhead(const Running& running) const;
  void LetOvertake(Running& running);
  void FinishInFlight(bool next_is_started);
  void Complete(Running& running, const absl::Status& launched, bool next_is_started = false);
  absl::StatusOr<Forward::Results> TakeResults(Running& running);
  void RunHalves(Running& running);
  static Timing TimingOf(const Running& running, TimePoint ended);

  Model& model_;
  const Padder& padder_;
  ModelMetrics& metrics_;
  Clock& clock_;
  SpeedEstimate& speed_;
  const Overtaking overtaking_;
  const std::function<void()> on_progress_;
  BatchDelivery delivery_;
  std::optional<Running> in_flight_;
  TimePoint completed_{};  // when the batch before was completed
  // Delivers while another batch is started, where the model is asynchronous.
  std::optional<SideThread> deliveries_;
};

}  // namespace linserve
