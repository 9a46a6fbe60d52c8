#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "batching/batch_trace.h"
#include "batching/request_queue.h"
#include "core/status/retry_delay.h"

// The part of RequestQueue that lets those go who wait no longer: whose callers have left, whose
// deadline passed, or would before they could be computed, and who gave way to others.
namespace linserve {
namespace {

constexpr std::chrono::milliseconds kBetweenSearches(100);
constexpr std::chrono::seconds kEstimateHolds(1);

}  // namespace

// Estimates the time of the batch that the sequence will be in. It is zero where no batch was begun
// for a while: then even a hopeless sequence is computed, which mends the estimate.
std::chrono::nanoseconds RequestQueue::BatchTime(const Pending& pending) const {
  if (!workers_.time_for || clock_.Now() - last_batch_ > kEstimateHolds) return {};
  const int64_t full = std::min(policy_.max_tokens, policy_.max_sequences * totals_.tokens /
                                                        std::max<int64_t>(totals_.sequences, 1));
  // Half of the batches take longer than the estimate; few take a quarter longer. Where other
  // sequences wait to have the worker instead, this one has it only if there is time enough.
  const int64_t own = SizeOf(pending).tokens;
  if (totals_.tokens > full) return workers_.time_for(std::max(full, own)) * 5 / 4;
  return workers_.time_for(std::max(totals_.tokens, own));
}

bool RequestQueue::IsHopeless(const Pending& pending) const {
  if (pending.delivery.Abandoned()) return true;
  if (pending.deadline == TimePoint::max()) return false;
  return pending.deadline <= clock_.Now() + BatchTime(pending);
}

// Drops those whose callers have left, if there is no room for what comes. A queue that is full of
// sequences whose callers still wait is not searched for every one that it refuses. Returns whether
// it was searched.
bool RequestQueue::LetDepartedGo(const Totals& added, std::vector<Pending>& departed) {
  if (closed_ || Fits(added, totals_) || clock_.Now() < next_search_) return false;
  RemoveDeparted(queue_.size(), departed);
  next_search_ = clock_.Now() + kBetweenSearches;
  return true;
}

void RequestQueue::RemoveDeparted(size_t most, std::vector<Pending>& departed) {
  auto entry = queue_.begin();
  for (size_t i = 0; i < most && entry != queue_.end(); ++i) {
    const auto next = std::next(entry);
    DropHopeless(entry, departed);
    entry = next;
  }
}

TimePoint RequestQueue::DropDeparted() {
  std::vector<Pending> departed;
  {
    MutexLock lock(mutex_);
    if (clock_.Now() < next_search_) return next_search_;
    next_search_ = clock_.Now() + kBetweenSearches;
    RemoveDeparted(queue_.size(), departed);
    PublishTotals();
  }
  AnswerDeparted(departed);
  return TimePoint::max();
}

// Counts each by its answer: those who are told to try again wait still, and are not abandoned.
void RequestQueue::AnswerDeparted(std::vector<Pending>& departed) {
  std::set<std::shared_ptr<const RequestOrigin>> rejected;
  for (Pending& pending : departed) {
    const TimePoint now = clock_.Now();
    absl::Status status;
    if (pending.deadline <= now) {
      status = absl::DeadlineExceededError("the deadline passed while the sequence was queued");
    } else if (pending.delivery.Abandoned()) {
      status = absl::CancelledError("the caller left while the sequence was queued");
    } else if (pending.next) {  // no other server can take what is under way
      status = absl::DeadlineExceededError("the deadline would pass before the next rows");
    } else {
      status =
          RetryAfter(absl::ResourceExhaustedError("the deadline would pass before the sequence, "
                                                  "which was queued, could be computed"),
                     RetryDelay());
    }
    if (!absl::IsResourceExhausted(status)) {
      metrics_.Abandoned(AbandonStage::kQueue);
    } else if (rejected.insert(pending.origin).second) {
      metrics_.Rejected(RejectReason::kDeadline);
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
