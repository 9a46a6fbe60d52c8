#include "batching/request_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace linserve {
namespace {

absl::Status Full(const char* limit, int64_t value, int64_t waiting, int64_t added) {
  const char* advice = added > value ? "send less at once" : "try again later";
  return absl::ResourceExhaustedError(
      "the queue is full: " + std::to_string(waiting) + " waiting and " + std::to_string(added) +
      " asked for exceed " + limit + " = " + std::to_string(value) + "; " + advice);
}

// The sequences that a decision looks at. Bounds the cost of forming one batch under backlog.
constexpr size_t kLookAhead = kMostSequencesPerBatch;

TimePoint DueTime(const Pending& pending) {
  return pending.enqueued + kHeadStart * static_cast<int>(pending.priority);
}

}  // namespace

RequestQueue::RequestQueue(const QueueLimits& limits, const BatchPolicy& policy, Clock& clock,
                           ModelMetrics& metrics, std::function<void(int64_t)> tokens_changed)
    : limits_(limits),
      policy_(policy),
      clock_(clock),
      metrics_(metrics),
      tokens_changed_(std::move(tokens_changed)) {}

RequestQueue::Admission RequestQueue::Admit(const Totals& added) const {
  if (closed_) {
    return {absl::UnavailableError("the server is draining; try another one"),
            RejectReason::kDraining};
  }
  if (totals_.sequences + added.sequences > limits_.max_sequences) {
    return {Full("max_queue_sequences", limits_.max_sequences, totals_.sequences, added.sequences),
            RejectReason::kQueue};
  }
  if (totals_.tokens + added.tokens > limits_.max_tokens) {
    return {Full("max_queue_tokens", limits_.max_tokens, totals_.tokens, added.tokens),
            RejectReason::kQueue};
  }
  if (totals_.bytes + added.bytes > limits_.max_bytes) {
    return {Full("max_queue_bytes", limits_.max_bytes, totals_.bytes, added.bytes),
            RejectReason::kBytes};
  }
  return {absl::OkStatus(), {}};
}

absl::Status RequestQueue::Push(std::vector<Pending>& request) {
  Totals added;
  added.sequences = static_cast<int64_t>(request.size());
  auto siblings = std::make_shared<int64_t>(added.sequences);
  for (Pending& pending : request) {
    added.tokens += pending.tokens;
    added.bytes += pending.bytes;
    pending.siblings = siblings;
    pending.enqueued = clock_.Now();
  }
  std::vector<Pending> departed;
  Admission admission;
  {
    MutexLock lock(mutex_);
    admission = Admit(added);
    if (absl::IsResourceExhausted(admission.status)) {
      RemoveDeparted(queue_.size(), departed);
      admission = Admit(added);
    }
    if (admission.status.ok() && !request.empty()) {
      totals_.requests += 1;
      totals_.sequences += added.sequences;
      totals_.tokens += added.tokens;
      totals_.bytes += added.bytes;
      for (Pending& pending : request) {
        const TimePoint due = DueTime(pending);
        queue_.emplace_hint(queue_.end(), due, std::move(pending));
      }
      request.clear();
    }
    PublishTotals();
  }
  if (admission.status.ok()) {
    changed_.NotifyOne();
  } else {
    metrics_.Rejected(admission.reason);
  }
  AnswerDeparted(departed);
  return admission.status;
}

std::optional<ClosedBatch> RequestQueue::Pop() {
  while (true) {
    std::vector<Pending> departed;
    std::optional<ClosedBatch> batch;
    bool finished = false;
    {
      MutexLock lock(mutex_);
      RemoveDeparted(kLookAhead, departed);
      const Decision decision = Decide(policy_, View(), clock_.Now(), closed_);
      if (!decision.take.empty()) {
        batch = Take(decision);
        // What is left may be another batch, for another worker.
        if (!queue_.empty()) changed_.NotifyOne();
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

std::optional<ClosedBatch> RequestQueue::PopDue() {
  std::vector<Pending> departed;
  std::optional<ClosedBatch> batch;
  {
    MutexLock lock(mutex_);
    RemoveDeparted(kLookAhead, departed);
    const Decision decision = Decide(policy_, View(), clock_.Now(), closed_);
    if (!decision.take.empty()) batch = Take(decision);
    if (batch && !queue_.empty()) changed_.NotifyOne();
    PublishTotals();
  }
  AnswerDeparted(departed);
  return batch;
}

std::optional<ClosedBatch> RequestQueue::PopShort(int64_t most_rows) {
  std::vector<Pending> departed;
  std::optional<ClosedBatch> batch;
  {
    MutexLock lock(mutex_);
    RemoveDeparted(kLookAhead, departed);
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
    if (!decision.take.empty()) batch = Take(decision);
    PublishTotals();
  }
  AnswerDeparted(departed);
  return batch;
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
  for (Pending& pending : flushed) pending.delivery.Complete(status);
  return flushed.size();
}

int64_t RequestQueue::tokens() const {
  MutexLock lock(mutex_);
  return totals_.tokens;
}

void RequestQueue::RemoveDeparted(size_t most, std::vector<Pending>& departed) {
  const TimePoint now = clock_.Now();
  auto entry = queue_.begin();
  for (size_t i = 0; i < most && entry != queue_.end(); ++i) {
    const auto next = std::next(entry);
    const Pending& pending = entry->second;
    if (pending.deadline <= now || pending.delivery.Abandoned()) Unlink(entry, departed);
    entry = next;
  }
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
  batch.reason = decision.reason;
  batch.closed = clock_.Now();
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
  if (tokens_changed_) tokens_changed_(totals_.tokens);
}

void RequestQueue::AnswerDeparted(std::vector<Pending>& departed) {
  for (Pending& pending : departed) {
    metrics_.Abandoned(AbandonStage::kQueue);
    const bool late = pending.deadline <= clock_.Now();
    pending.delivery.Complete(
        late ? absl::DeadlineExceededError("the deadline passed while the sequence was queued")
             : absl::CancelledError("the caller left while the sequence was queued"));
  }
}

}  // namespace linserve
