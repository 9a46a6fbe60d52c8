#include <algorithm>
#include <cstdio>
#include <utility>

#include "batching/batch_trace.h"
#include "batching/limit_met.h"
#include "batching/request_queue.h"
#include "core/retry_delay.h"

namespace linserve {
namespace {

constexpr std::chrono::milliseconds kBetweenSearches(100);
constexpr std::chrono::seconds kEstimateHolds(1);

absl::Status Full(const char* limit, int64_t value, int64_t waiting, int64_t added) {
  return LimitMet("the queue is full: " + std::to_string(waiting) + " waiting", added, limit,
                  value);
}

std::string Milliseconds(std::chrono::nanoseconds time) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f ms", static_cast<double>(time.count()) / 1e6);
  return text;
}

TimePoint DueTime(const Pending& pending) {
  return pending.turn + kHeadStart * static_cast<int>(pending.priority);
}

}  // namespace

RequestQueue::Totals RequestQueue::TotalsOf(const std::vector<Pending>& sequences) {
  Totals totals;
  totals.sequences = static_cast<int64_t>(sequences.size());
  for (const Pending& pending : sequences) {
    totals.tokens += pending.tokens;
    totals.bytes += pending.bytes;
  }
  return totals;
}

bool RequestQueue::Fits(const Totals& added, const Totals& waiting) const {
  return waiting.sequences + added.sequences <= limits_.max_sequences &&
         waiting.tokens + added.tokens <= limits_.max_tokens &&
         waiting.bytes + added.bytes <= limits_.max_bytes;
}

// OK where Fits() says so, and else the limit that is met.
RequestQueue::Admission RequestQueue::Admit(const Totals& added) const {
  const Totals& waiting = totals_;
  if (closed_) {
    return {absl::UnavailableError("the server is draining; try another one"),
            RejectReason::kDraining};
  }
  if (waiting.sequences + added.sequences > limits_.max_sequences) {
    return {Full("max_queue_sequences", limits_.max_sequences, waiting.sequences, added.sequences),
            RejectReason::kQueue};
  }
  if (waiting.tokens + added.tokens > limits_.max_tokens) {
    return {Full("max_queue_tokens", limits_.max_tokens, waiting.tokens, added.tokens),
            RejectReason::kQueue};
  }
  if (waiting.bytes + added.bytes > limits_.max_bytes) {
    return {Full("max_queue_bytes", limits_.max_bytes, waiting.bytes, added.bytes),
            RejectReason::kBytes};
  }
  return {absl::OkStatus(), {}};
}

RequestQueue::Admission RequestQueue::MakeRoom(const std::vector<Pending>& request,
                                               std::vector<Pending>& departed,
                                               std::vector<Pending>& displaced) {
  const Totals added = TotalsOf(request);
  Admission admission = Admit(added);
  if (absl::IsResourceExhausted(admission.status) && clock_.Now() >= next_search_) {
    RemoveDeparted(queue_.size(), departed);
    admission = Admit(added);
    // A queue that is full of those who wait is not searched for every one that it refuses.
    next_search_ = clock_.Now() + kBetweenSearches;
  }
  if (request.empty() || absl::IsUnavailable(admission.status)) return admission;
  const Pending& last = request.back();
  const auto slack = last.deadline - clock_.Now();
  // The batch under way is waited for, too, and then its own.
  const auto own = 2 * BatchTime(last);
  if (const auto wait = WaitBefore(last); wait.count() > 0 && wait + own > slack) {
    return {absl::ResourceExhaustedError(
                "the deadline is in " + Milliseconds(slack) + ", but " + Milliseconds(wait) +
                " or more of work wait before this, and its own takes up to " + Milliseconds(own) +
                "; try again later, or another server"),
            RejectReason::kDeadline};
  }
  if (!admission.status.ok() && Displace(DueTime(last), added, displaced)) {
    return {absl::OkStatus(), {}};
  }
  return admission;
}

// Those who are due last make room for what is due before them; all that is needed, or nobody.
bool RequestQueue::Displace(TimePoint due, const Totals& added, std::vector<Pending>& displaced) {
  std::vector<Queue::iterator> victims;
  Totals left = totals_;
  auto entry = queue_.end();
  while (!Fits(added, left)) {
    if (entry == queue_.begin()) return false;
    --entry;
    if (entry->first <= due) return false;
    const Pending& pending = entry->second;
    if (pending.unit) continue;  // its request would be torn apart
    left.sequences -= 1;
    left.tokens -= pending.tokens;
    left.bytes -= pending.bytes;
    victims.push_back(entry);
  }
  for (const Queue::iterator victim : victims) {
    GiveUp(victim, displaced);
  }
  return true;
}

// A sequence that is not to be computed.
void RequestQueue::GiveUp(Queue::iterator entry, std::vector<Pending>& target) {
  turns_.GiveBack(entry->second.origin->caller, TimeFor(entry->second.tokens));
  Unlink(entry, target);
}

// As if the request were admitted.
void RequestQueue::SetTurns(std::vector<Pending>& request) const {
  const TimePoint now = clock_.Now();
  if (request.empty()) return;
  TimePoint turn = turns_.Next(request[0].origin->caller, now);
  for (Pending& pending : request) {
    pending.enqueued = now;
    pending.turn = turn;
    turn += TimeFor(pending.tokens);
  }
}

void RequestQueue::Enqueue(std::vector<Pending>& request) {
  if (request.empty()) return;
  const Totals added = TotalsOf(request);
  totals_.requests += 1;
  totals_.sequences += added.sequences;
  totals_.tokens += added.tokens;
  totals_.bytes += added.bytes;
  const Pending& last = request.back();
  turns_.Reserve(last.origin->caller, last.turn + TimeFor(last.tokens), clock_.Now());
  const auto siblings = std::make_shared<int64_t>(added.sequences);
  for (Pending& pending : request) {
    pending.siblings = siblings;
    const TimePoint due = DueTime(pending);
    queue_.emplace_hint(queue_.end(), due, std::move(pending));
  }
  request.clear();
}

// By all workers together.
std::chrono::nanoseconds RequestQueue::TimeFor(int64_t tokens) const {
  return workers_.time_for ? workers_.time_for(tokens) / workers_.count
                           : std::chrono::nanoseconds(0);
}

// At least so long, if the sequence has a deadline; not more than it takes to see that it is late.
std::chrono::nanoseconds RequestQueue::WaitBefore(const Pending& pending) const {
  if (pending.deadline == TimePoint::max()) return {};
  const auto slack = pending.deadline - clock_.Now();
  if (TimeFor(totals_.tokens) + 2 * BatchTime(pending) <= slack) return {};
  const TimePoint due = DueTime(pending);
  int64_t tokens = 0;
  for (const auto& [others, other] : queue_) {
    if (others > due || TimeFor(tokens) > slack) break;
    tokens += other.tokens;
  }
  return TimeFor(tokens);
}

// Of the batch that the sequence will be in. Zero where none was begun for a while: then even a
// hopeless sequence is computed, and the estimate mended by it.
std::chrono::nanoseconds RequestQueue::BatchTime(const Pending& pending) const {
  if (!workers_.time_for || clock_.Now() - last_batch_ > kEstimateHolds) return {};
  const int64_t full = std::min(policy_.max_tokens, policy_.max_sequences * totals_.tokens /
                                                        std::max<int64_t>(totals_.sequences, 1));
  // Half of the batches take longer than the estimate; few take a quarter longer. Where others wait
  // to have the worker instead, it is theirs unless there is time enough.
  if (totals_.tokens > full) return workers_.time_for(std::max(full, pending.tokens)) * 5 / 4;
  return workers_.time_for(std::max(totals_.tokens, pending.tokens));
}

bool RequestQueue::IsHopeless(const Pending& pending) const {
  if (pending.delivery.Abandoned()) return true;
  if (pending.deadline == TimePoint::max()) return false;
  return pending.deadline <= clock_.Now() + BatchTime(pending);
}

void RequestQueue::RemoveDeparted(size_t most, std::vector<Pending>& departed) {
  auto entry = queue_.begin();
  for (size_t i = 0; i < most && entry != queue_.end(); ++i) {
    const auto next = std::next(entry);
    if (IsHopeless(entry->second)) GiveUp(entry, departed);
    entry = next;
  }
}

void RequestQueue::AnswerDeparted(std::vector<Pending>& departed) {
  for (Pending& pending : departed) {
    metrics_.Abandoned(AbandonStage::kQueue);
    const TimePoint now = clock_.Now();
    absl::Status status = absl::CancelledError("the caller left while the sequence was queued");
    if (pending.deadline <= now) {
      status = absl::DeadlineExceededError("the deadline passed while the sequence was queued");
    } else if (!pending.delivery.Abandoned()) {
      status =
          RetryAfter(absl::ResourceExhaustedError("the deadline would pass before the sequence, "
                                                  "which was queued, could be computed"),
                     RetryDelay());
    }
    TraceQueued(pending, now, status);
    pending.delivery.Complete(status);
  }
}

void RequestQueue::AnswerDisplaced(std::vector<Pending>& displaced) {
  for (Pending& pending : displaced) {
    metrics_.Displaced();
    const absl::Status status = RetryAfter(
        absl::ResourceExhaustedError("the queue is full, and those of higher priority, or of "
                                     "callers with less in it, go first; try again later"),
        RetryDelay());
    TraceQueued(pending, clock_.Now(), status);
    pending.delivery.Complete(status);
  }
}

}  // namespace linserve
