#include "engine/batch_runner.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "batching/batch_trace.h"
#include "core/threads/guarded.h"
#include "telemetry/trace/trace.h"

namespace linserve {
namespace {

// At most so many batches wait for their delivery. Then the worker waits, so that results do not
// pile up.
constexpr size_t kMostDeliveries = 2;

// From so many tokens on, a batch of sessions' chunks takes about as long as one of other
// sequences.
constexpr int64_t kTokensOfFullStep = 256;

}  // namespace

BatchRunner::BatchRunner(Model& model, const Padder& padder, ModelMetrics& metrics, Clock& clock,
                         SpeedEstimate& speed, Overtaking overtaking,
                         std::function<void()> on_progress)
    : model_(model),
      padder_(padder),
      metrics_(metrics),
      clock_(clock),
      speed_(speed),
      overtaking_(std::move(overtaking)),
      on_progress_(std::move(on_progress)),
      delivery_(model, metrics, clock) {
  if (!model.asynchronous()) return;
  deliveries_.emplace(kMostDeliveries);
  deliveries_->Add([] { NameTraceThread("deliveries"); });
}

void BatchRunner::Run(ClosedBatch closed) {
  for (const Pending& pending : closed.sequences) {
    metrics_.QueueTime(closed.closed - pending.enqueued);
  }
  Running running{std::move(closed)};
  absl::Status launched = Launch(running);
  // The batch that was started before is ready by now, or soon; and it may hold the memory that is
  // missing.
  const bool again = absl::IsResourceExhausted(launched) && busy();
  if (again) running.forward.reset();
  FinishInFlight(/*next_is_started=*/launched.ok());
  if (again) {
    running = Running{.closed = std::move(running.closed), .counted = running.counted};
    launched = Launch(running);
  }
  if (launched.ok() && model_.asynchronous()) {
    in_flight_ = std::move(running);
  } else {
    Complete(running, launched);
  }
  delivery_.LogFailures();
}

void BatchRunner::Finish() {
  FinishInFlight(/*next_is_started=*/false);
  delivery_.LogFailures();
  if (deliveries_) deliveries_->Wait();
}

void BatchRunner::FinishInFlight(bool next_is_started) {
  if (!in_flight_) return;
  Running running = *std::move(in_flight_);
  in_flight_.reset();
  Complete(running, absl::OkStatus(), next_is_started);
}

absl::Status BatchRunner::Launch(Running& running) {
  return Guarded("the forward pass", [&] { return TryLaunch(running); });
}

absl::Status BatchRunner::TryLaunch(Running& running) {
  running.progress.started = clock_.Now();  // set again below, unless that fails
  std::vector<const Item*> items;
  for (const Pending& pending : running.closed.sequences) {
    items.push_back(&pending.item);
    running.tokens += pending.tokens;
  }
  running.departed.assign(items.size(), false);
  Progress& progress = running.progress;
  Batch batch = padder_.Pad(items, model_.allocator());
  progress.rows = batch.rows;
  progress.started = clock_.Now();
  if (!running.counted) {
    metrics_.BatchClosed(batch, running.closed.reason);
    metrics_.BatchFormTime(progress.started - running.closed.closed);
    running.counted = true;
  }

  auto forward = model_.Start(std::move(batch));
  if (!forward.ok()) return forward.status();
  running.forward = *std::move(forward);
  progress.copy_in = clock_.Now() - progress.started;
  metrics_.ComputeTime(ComputePhase::kCopyIn, progress.copy_in);
  return Advance(running);
}

absl::Status BatchRunner::Advance(Running& running) {
  Progress& progress = running.progress;
  progress.turn = progress.reported = clock_.Now();
  while (true) {
    auto done = running.forward->Advance([&](int64_t rows) {
      progress.rows_of_layer = std::min(progress.rows, progress.rows_of_layer + rows);
      return LookUp(running);
    });
    if (done.ok() && !*done) {
      ++progress.layers;
      progress.rows_of_layer = 0;
      if (!LookUp(running)) done = absl::CancelledError("all callers of the batch have left");
    }
    const TimePoint now = clock_.Now();
    if (done.ok() && *done) {
      progress.forward += now - progress.turn;
      return absl::OkStatus();
    }
    ForgetDeparted(running, now);
    if (!done.ok()) return done.status();
  }
}

// Lets others have the thread. Returns false if nobody waits for the batch any more.
bool BatchRunner::LookUp(Running& running) {
  const TimePoint now = clock_.Now();
  running.progress.forward += now - running.progress.turn;
  if (NobodyWaits(running, now)) return false;
  Report(running, now);
  LetOvertake(running);
  running.progress.turn = clock_.Now();
  return true;
}

bool BatchRunner::NobodyWaits(const Running& running, TimePoint now) {
  return std::all_of(running.closed.sequences.begin(), running.closed.sequences.end(),
                     [&](const Pending& pending) {
                       return pending.deadline <= now || pending.delivery.Abandoned();
                     });
}

// Drops what is left to compute for callers who have left. A unit is computed together, so nothing
// of it is dropped.
void BatchRunner::ForgetDeparted(Running& running, TimePoint now) {
  for (size_t i = 0; i < running.departed.size(); ++i) {
    const Pending& pending = running.closed.sequences[i];
    if (running.departed[i] || (pending.deadline > now && !pending.delivery.Abandoned())) continue;
    running.departed[i] = true;
    if (running.forward->Forget(i)) {
      running.cut_short = true;
    } else {
      metrics_.Wasted(pending.tokens);
    }
  }
}

// Reports progress ten times a second at most.
void BatchRunner::Report(Running& running, TimePoint now) {
  constexpr std::chrono::milliseconds kEvery(100);
  Progress& progress = running.progress;
  if (now - progress.reported < kEvery) return;
  progress.reported = now;
  if (on_progress_) on_progress_();
  const ItemProgress far{progress.layers, model_.info().layers, progress.rows_of_layer,
                         progress.rows};
  for (const Pending& pending : running.closed.sequences) {
    if (pending.item.report_progress) pending.delivery.Report(far);
  }
}

void BatchRunner::Complete(Running& running, const absl::Status& launched, bool next_is_started) {
  auto outputs = launched.ok() ? TakeResults(running) : launched;
  running.forward.reset();
  const TimePoint ended = clock_.Now();
  const Timing timing = TimingOf(running, ended);
  TraceBatch(running.closed, timing, ended, outputs.status());
  if (outputs.ok()) {
    // A session's results are read from the model, which is this thread's.
    const bool sessions = running.closed.sequences[0].item.session != nullptr;
    if (!next_is_started || sessions) {
      return delivery_.Results(running.closed, running.departed, timing, *std::move(outputs));
    }
    return deliveries_->Add(
        [this, timing, running = std::move(running), outputs = *std::move(outputs)]() mutable {
          delivery_.Results(running.closed, running.departed, timing, std::move(outputs));
        });
  }
  const bool divisible = running.closed.sequences.size() > 1 && !running.closed.sequences[0].unit;
  if (!divisible || absl::IsCancelled(outputs.status()) || model_.lost()) {
    // Another server can do what this device cannot any more.
    return delivery_.Failure(
        running.closed,
        model_.lost() ? absl::UnavailableError(outputs.status().message()) : outputs.status());
  }
  metrics_.BatchSplit(absl::IsResourceExhausted(outputs.status()) ? SplitReason::kMemory
                                                                  : SplitReason::kFault);
  RunHalves(running);
}

absl::StatusOr<Forward::Results> BatchRunner::TakeResults(Running& running) {
  Progress& progress = running.progress;
  const size_t count = running.closed.sequences.size();
  const TimePoint start = clock_.Now();
  auto outputs = Guarded("the forward pass", [&] {
    return running.forward->TakeResults(
        [&](int64_t /*rows*/) { return !NobodyWaits(running, clock_.Now()); });
  });
  const TimePoint end = clock_.Now();
  if (model_.asynchronous()) {
    // A device came to this batch when it was done with the one before.
    progress.forward = end - std::max(progress.started, std::exchange(completed_, end));
  } else {
    progress.copy_out = end - start;
  }
  if (!outputs.ok()) return outputs;
  if (outputs->size() != count) {
    return absl::InternalError("the model gave " + std::to_string(outputs->size()) +
                               " results for " + std::to_string(count) + " sequences");
  }
  metrics_.ComputeTime(ComputePhase::kForward, progress.forward);
  metrics_.ComputeTime(ComputePhase::kCopyOut, progress.copy_out);
  // The speed counts real tokens, as the queue does: padding makes each of them slower. It is that
  // of whole forward passes without their results, of which a caller may ask for many. A step of
  // sessions says little of other work: its few tokens take as long as many.
  const bool step = running.closed.sequences[0].item.session != nullptr;
  if (!running.cut_short && (!step || running.tokens >= kTokensOfFullStep)) {
    speed_.Observe(running.tokens, progress.forward);
  }
  return outputs;
}

// Runs one half after the other: the second may need the memory of the first.
void BatchRunner::RunHalves(Running& running) {
  ClosedBatch closed{
      .sequences = {}, .reason = running.closed.reason, .closed = running.closed.closed};
  for (size_t i = 0; i < running.closed.sequences.size(); ++i) {
    Pending& pending = running.closed.sequences[i];
    if (i < running.departed.size() && running.departed[i]) {
      delivery_.Departed(pending);
    } else {
      closed.sequences.push_back(std::move(pending));
    }
  }
  const auto middle = closed.sequences.begin() + static_cast<int64_t>(closed.sequences.size() / 2);
  ClosedBatch second{.sequences = {}, .reason = closed.reason, .closed = closed.closed};
  std::move(middle, closed.sequences.end(), std::back_inserter(second.sequences));
  closed.sequences.erase(middle, closed.sequences.end());
  for (ClosedBatch* half : {&closed, &second}) {
    if (half->sequences.empty()) continue;
    Running again{.closed = std::move(*half), .counted = running.counted};
    const absl::Status launched = Launch(again);
    Complete(again, launched);
  }
}

Timing BatchRunner::TimingOf(const Running& running, TimePoint ended) {
  const Progress& progress = running.progress;
  return {.batch = progress.started - running.closed.closed,
          .compute = ended - progress.started,
          .copy_in = progress.copy_in,
          .copy_out = progress.copy_out,
          .batch_sequences = std::ssize(running.closed.sequences),
          .batch_tokens = progress.rows};
}

}  // namespace linserve
