#include "batching/request_queue.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "batching/batch_trace.h"
#include "core/retry_delay.h"

namespace linserve {
namespace {

// The sequences that a decision looks at. Bounds the cost of forming one batch under backlog.
constexpr size_t kLookAhead = kMostSequencesPerBatch;

constexpr int64_t kAnyRows = std::numeric_limits<int64_t>::max();

}  // namespace

RequestQueue::RequestQueue(const QueueLimits& limits, const BatchPolicy& policy, Clock& clock,
                           ModelMetrics& metrics, Workers workers)
    : limits_(limits),
      policy_(policy),
      clock_(clock),
      metrics_(metrics),
      workers_(std::move(workers)) {}

absl::Status RequestQueue::Push(std::vector<Pending>& request) {
  std::vector<Pending> departed;
  std::vector<Pending> displaced;
  Admission admission;
  {
    MutexLock lock(mutex_);
    SetTurns(request);
    admission = MakeRoom(request, departed, displaced);
    if (admission.status.ok()) Enqueue(request);
    PublishTotals();
  }
  if (admission.status.ok()) {
    changed_.NotifyOne();
  } else {
    metrics_.Rejected(admission.reason);
  }
  AnswerDeparted(departed);
  AnswerDisplaced(displaced);
  if (absl::IsResourceExhausted(admission.status)) {
    return RetryAfter(admission.status, RetryDelay());
  }
  return admission.status;
}

void RequestQueue::PushNext(Pending next) {
  std::vector<Pending> request;
  request.push_back(std::move(next));
  {
    MutexLock lock(mutex_);
    SetTurns(request);
    Enqueue(request);
    PublishTotals();
  }
  changed_.NotifyOne();
}

std::optional<ClosedBatch> RequestQueue::Pop() {
  while (true) {
    std::vector<Pending> departed;
    std::optional<ClosedBatch> batch;
    bool finished = false;
    {
      MutexLock lock(mutex_);
      RemoveDeparted(kLookAhead, departed);
      const Decision decision = DecideAmong(kAnyRows);
      if (!decision.take.empty()) {
        batch = Take(decision);
      } else if (queue_.empty() && closed_) {
        finished = true;
      } else if (departed.empty()) {
        if (decision.wait_until) {
          clock_.WaitUntil(lock, changed_, *decision.wait_until);
        } else {
          changed_.Wait(lock);
        }
      }
      PublishTotals();
    }
    AnswerDeparted(departed);
    if (batch || finished) return batch;
  }
}

std::optional<ClosedBatch> RequestQueue::PopDue() { return PopAtOnce(kAnyRows); }

std::optional<ClosedBatch> RequestQueue::PopShort(int64_t most_rows) {
  return PopAtOnce(most_rows);
}

std::optional<ClosedBatch> RequestQueue::PopAtOnce(int64_t most_rows) {
  std::vector<Pending> departed;
  std::optional<ClosedBatch> batch;
  {
    MutexLock lock(mutex_);
    RemoveDeparted(kLookAhead, departed);
    const Decision decision = DecideAmong(most_rows);
    if (!decision.take.empty()) batch = Take(decision);
    PublishTotals();
  }
  AnswerDeparted(departed);
  return batch;
}

// Among those of at most so many rows, of which there are not units then.
Decision RequestQueue::DecideAmong(int64_t most_rows) const {
  if (most_rows == kAnyRows) return Decide(policy_, View(), clock_.Now(), closed_);
  std::vector<Waiting> view;
  std::vector<size_t> places;  // in the queue
  for (size_t i = 0; const Waiting& waiting : View()) {
    if (waiting.rows <= most_rows && !waiting.unit) {
      view.push_back(waiting);
      places.push_back(i);
    }
    ++i;
  }
  BatchPolicy policy = policy_;
  policy.max_delay = {};  // they have waited for the long one
  Decision decision = Decide(policy, view, clock_.Now(), closed_);
  for (size_t& index : decision.take) index = places[index];
  return decision;
}

std::chrono::milliseconds RequestQueue::RetryDelay() const {
  constexpr std::chrono::milliseconds kShortest(10);
  return std::max(kShortest, std::chrono::ceil<std::chrono::milliseconds>(DelayEstimate()));
}

void RequestQueue::Close() {
  {
    MutexLock lock(mutex_);
    closed_ = true;
  }
  changed_.NotifyAll();
}

size_t RequestQueue::Flush(const absl::Status& status) {
  std::vector<Pending> flushed;
  {
    MutexLock lock(mutex_);
    while (!queue_.empty()) Unlink(queue_.begin(), flushed);
    PublishTotals();
  }
  changed_.NotifyAll();
  for (Pending& pending : flushed) {
    TraceQueued(pending, clock_.Now(), status);
    pending.delivery.Complete(status);
  }
  return flushed.size();
}

std::chrono::nanoseconds RequestQueue::DelayEstimate() const {
  MutexLock lock(mutex_);
  return TimeFor(totals_.tokens);
}

std::vector<Waiting> RequestQueue::View() const {
  std::vector<Waiting> view;
  view.reserve(std::min(queue_.size(), kLookAhead));
  for (const auto& [due, pending] : queue_) {
    if (view.size() == kLookAhead) break;
    view.push_back({pending.key, pending.cost, pending.enqueued, pending.unit});
  }
  return view;
}

ClosedBatch RequestQueue::Take(const Decision& decision) {
  ClosedBatch batch;
  auto entry = queue_.begin();
  size_t at = 0;
  for (size_t index : decision.take) {
    std::advance(entry, index - at);
    const auto next = std::next(entry);
    Unlink(entry, batch.sequences);
    entry = next;
    at = index + 1;
  }
  if (queue_.empty()) {
    turns_.AllBegun();
  } else if (!batch.sequences.empty()) {
    turns_.Begin(batch.sequences[0].turn);
  }
  batch.reason = decision.reason;
  batch.closed = last_batch_ = clock_.Now();
  // What is left may be another batch, for another worker.
  if (!queue_.empty()) changed_.NotifyOne();
  return batch;
}

void RequestQueue::Unlink(Queue::iterator entry, std::vector<Pending>& target) {
  Pending& pending = entry->second;
  totals_.sequences -= 1;
  totals_.tokens -= pending.tokens;
  totals_.bytes -= pending.bytes;
  if (--*pending.siblings == 0) totals_.requests -= 1;
  target.push_back(std::move(pending));
  queue_.erase(entry);
}

void RequestQueue::PublishTotals() {
  metrics_.SetQueue(totals_.requests, totals_.sequences, totals_.tokens, totals_.bytes);
  metrics_.SetQueueDelayEstimate(TimeFor(totals_.tokens));
}

}  // namespace linserve
