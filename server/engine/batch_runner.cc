#include "engine/batch_runner.h"

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include "telemetry/log.h"

namespace linserve {
namespace {

// Rows through one layer between two looks at who still waits.
constexpr int64_t kStepBudget = 1;

// Nobody waits for the batch any more.
bool AllDeparted(const ClosedBatch& closed, TimePoint now) {
  return std::all_of(closed.sequences.begin(), closed.sequences.end(), [&](const Pending& pending) {
    return pending.deadline <= now || pending.delivery.Abandoned();
  });
}

}  // namespace

void BatchRunner::Run(ClosedBatch closed) {
  for (const Pending& pending : closed.sequences) {
    metrics_.QueueTime(closed.closed - pending.enqueued);
  }
  Progress progress;
  absl::StatusOr<std::vector<TensorMap>> outputs = absl::InternalError("");
  try {
    outputs = Compute(closed, progress);
  } catch (const std::bad_alloc&) {
    outputs = absl::ResourceExhaustedError("not enough memory for this batch of " +
                                           std::to_string(closed.sequences.size()) + " sequences");
  } catch (const std::exception& error) {
    outputs = absl::InternalError(std::string("the forward pass failed: ") + error.what());
  }
  if (outputs.ok() && outputs->size() != closed.sequences.size()) {
    outputs =
        absl::InternalError("the model gave " + std::to_string(outputs->size()) + " results for " +
                            std::to_string(closed.sequences.size()) + " sequences");
  }
  if (outputs.ok()) {
    DeliverResults(closed, *std::move(outputs), progress);
  } else {
    DeliverFailure(closed, outputs.status());
  }
}

absl::StatusOr<std::vector<TensorMap>> BatchRunner::Compute(const ClosedBatch& closed,
                                                            Progress& progress) {
  std::vector<const Item*> items;
  int64_t tokens = 0;
  for (const Pending& pending : closed.sequences) {
    items.push_back(&pending.item);
    tokens += pending.tokens;
  }
  Batch batch = padder_.Pad(items, model_.allocator());
  progress.rows = batch.rows;
  metrics_.BatchClosed(batch, closed.reason);
  progress.started = clock_.Now();
  metrics_.BatchFormTime(progress.started - closed.closed);

  auto forward = model_.Start(std::move(batch));
  if (!forward.ok()) return forward.status();
  const TimePoint copied = clock_.Now();
  progress.copy_in = copied - progress.started;
  metrics_.ComputeTime(ComputePhase::kCopyIn, progress.copy_in);
  if (absl::Status status = Advance(**forward, closed, progress); !status.ok()) return status;
  const TimePoint computed = clock_.Now();
  metrics_.ComputeTime(ComputePhase::kForward, computed - copied - progress.overtaken);
  auto outputs = (*forward)->TakeResults();
  progress.copy_out = clock_.Now() - computed;
  metrics_.ComputeTime(ComputePhase::kCopyOut, progress.copy_out);
  // By real tokens, in which the queue is measured, too: padding makes each of them slower.
  speed_.Observe(tokens, clock_.Now() - progress.started - progress.overtaken);
  return outputs;
}

absl::Status BatchRunner::Advance(Forward& forward, const ClosedBatch& closed, Progress& progress) {
  while (true) {
    const TimePoint start = clock_.Now();
    auto done = forward.Advance(kStepBudget);
    if (!done.ok()) return done.status();
    if (*done) return absl::OkStatus();
    const TimePoint now = clock_.Now();
    if (AllDeparted(closed, now)) {
      return absl::CancelledError("all callers of the batch left while it was computed");
    }
    LetOvertake(now - start, progress);
  }
}

void BatchRunner::LetOvertake(std::chrono::nanoseconds share, Progress& progress) {
  if (!overtaking_.next || progress.rows <= overtaking_.long_rows) return;
  const TimePoint start = clock_.Now();
  BatchRunner between(model_, padder_, metrics_, clock_, speed_);
  do {
    auto batch = overtaking_.next();
    if (!batch) break;
    between.Run(*std::move(batch));
  } while (clock_.Now() - start < share);
  progress.overtaken += clock_.Now() - start;
}

void BatchRunner::DeliverResults(ClosedBatch& closed, std::vector<TensorMap> outputs,
                                 const Progress& progress) {
  const Timing timing{.batch = progress.started - closed.closed,
                      .compute = clock_.Now() - progress.started,
                      .copy_in = progress.copy_in,
                      .copy_out = progress.copy_out,
                      .batch_sequences = static_cast<int64_t>(closed.sequences.size()),
                      .batch_tokens = progress.rows};
  metrics_.statistics().Executed(timing);
  for (size_t i = 0; i < closed.sequences.size(); ++i) {
    Pending& pending = closed.sequences[i];
    ItemResult result;
    result.outputs = std::move(outputs[i]);
    result.tokens = pending.tokens;
    result.timing = timing;
    result.timing.queue = closed.closed - pending.enqueued;
    pending.delivery.Complete(std::move(result));
  }
}

void BatchRunner::DeliverFailure(ClosedBatch& closed, const absl::Status& status) {
  const bool abandoned = absl::IsCancelled(status);
  const TimePoint now = clock_.Now();
  for (Pending& pending : closed.sequences) {
    if (abandoned) {
      metrics_.Abandoned(AbandonStage::kBatch);
    } else {
      Log(LogLevel::kError, "forward pass failed",
          {{"request_id", *pending.request_id}, {"error", std::string(status.message())}});
    }
    const bool late = abandoned && pending.deadline <= now;
    pending.delivery.Complete(
        late ? absl::DeadlineExceededError("the deadline passed while the sequence was computed")
             : status);
  }
}

}  // namespace linserve
