#include "batching/request_queue.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "batching/batch_trace.h"
#include "core/status/retry_delay.h"

namespace linserve {
namespace {

// A decision looks at so many sequences. That bounds the cost of forming one batch under backlog.
constexpr size_t kLookAhead = kMostSequencesPerBatch;

constexpr int64_t kAnyRows = std::numeric_limits<int64_t>::max();

}  // namespace

// Is held by a batch that is counted as beyond the budget, for as long as it lives.
class RequestQueue::BeyondBudget {
 public:
  explicit BeyondBudget(RequestQueue& queue) : queue_(queue) {}
  ~BeyondBudget() {
    MutexLock lock(queue_.mutex_);
    --queue_.beyond_budget_;
    queue_.changed_.NotifyAll();  // workers who were to leave such sequences to others
  }
  BeyondBudget(const BeyondBudget&) = delete;
  BeyondBudget& operator=(const BeyondBudget&) = delete;

 private:
  RequestQueue& queue_;
};

RequestQueue::RequestQueue(const QueueLimits& limits, const BatchPolicy& policy, Clock& clock,
                           ModelMetrics& metrics, Workers workers)
    : policy_(policy),
      clock_(clock),
      metrics_(metrics),
      workers_(std::move(workers)),
      limits_(limits) {}

RequestQueue::~RequestQueue() { metrics_.QueueChanged(published_, {}); }

void RequestQueue::SetLimits(const QueueLimits& limits) {
  MutexLock lock(mutex_);
  limits_ = limits;
}

QueueLimits RequestQueue::limits() const {
  MutexLock lock(mutex_);
  return limits_;
}

absl::Status RequestQueue::Push(std::vector<Pending>& request) {
  return TakeIn(request, /*held=*/false);
}

absl::Status RequestQueue::Hold(Pending& pending) {
  std::vector<Pending> alone;
  alone.reserve(1);
  const absl::Cleanup give_back = [&] { pending = std::move(alone[0]); };
  alone.push_back(std::move(pending));
  absl::Status status = TakeIn(alone, /*held=*/true);
  if (!status.ok()) return status;
  const Totals held{1, 1, alone[0].tokens, alone[0].bytes};
  alone[0].room = std::shared_ptr<void>(nullptr, [this, held](void*) { GiveBack(held); });
  return status;
}

void RequestQueue::GiveBack(const Totals& held) {
  MutexLock lock(mutex_);
  totals_ -= held;
  held_tokens_ -= held.tokens;
  PublishTotals();
}

RequestQueue::Totals& RequestQueue::Totals::operator+=(const Totals& added) {
  requests += added.requests;
  sequences += added.sequences;
  tokens += added.tokens;
  bytes += added.bytes;
  return *this;
}

RequestQueue::Totals& RequestQueue::Totals::operator-=(const Totals& left) {
  requests -= left.requests;
  sequences -= left.sequences;
  tokens -= left.tokens;
  bytes -= left.bytes;
  return *this;
}

absl::Status RequestQueue::TakeIn(std::vector<Pending>& request, bool held) {
  std::vector<Pending> departed;
  std::vector<Pending> displaced;
  Admission admission;
  {
    MutexLock lock(mutex_);
    ShareIdentities(request);
    Totals added = TotalsOf(request);
    // Those whom the request was to join may be among the departed.
    if (LetDepartedGo(added, departed)) added = TotalsOf(request);
    SetTurns(request);
    admission = MakeRoom(request, added, displaced);
    // What is held counts once it is queued, and what comes to a server that drains is for others.
    if (!absl::IsUnavailable(admission.status) && !(held && admission.status.ok())) {
      metrics_.Arrived(added.tokens);
    }
    if (admission.status.ok() && held) {
      totals_ += added;
      held_tokens_ += added.tokens;
    } else if (admission.status.ok()) {
      ReserveTurns(request);
      Enqueue(request);
    }
    if (admission.status.ok()) changed_.NotifyOne();
    PublishTotals();
  }
  if (!admission.status.ok()) metrics_.Rejected(admission.reason);
  AnswerDeparted(departed);
  AnswerDisplaced(displaced);
  if (absl::IsResourceExhausted(admission.status)) {
    return RetryAfter(admission.status, RetryDelay());
  }
  return admission.status;
}

void RequestQueue::PushNext(std::vector<Pending>& next) {
  next[0].next = true;
  MutexLock lock(mutex_);
  KeepTurn(next[0]);
  metrics_.Arrived(TotalsOf(next).tokens);
  Enqueue(next);
  changed_.NotifyOne();
  PublishTotals();
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
        changed_.Wait([&](CondVar& changed) {
          if (decision.wait_until) {
            clock_.WaitUntil(lock, changed, *decision.wait_until);
          } else {
            changed.Wait(lock);
          }
        });
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

// Decides among the sequences that have at most so many rows together.
Decision RequestQueue::DecideAmong(int64_t most_rows) const {
  BatchPolicy policy = policy_;
  if (most_rows != kAnyRows) {
    policy.max_tokens = std::min(policy.max_tokens, most_rows);
    policy.max_delay = {};  // the short ones have waited for the long one already
  } else if (beyond_budget_ >= workers_.beyond_budget) {
    most_rows = policy.max_tokens;
  }
  std::vector<Waiting> view;
  std::vector<size_t> places;  // their places in the queue
  for (size_t i = 0; const Waiting& waiting : View()) {
    if (waiting.rows <= most_rows) {
      view.push_back(waiting);
      places.push_back(i);
    }
    ++i;
  }
  Decision decision = Decide(policy, view, clock_.Now(), closed_);
  for (size_t& index : decision.take) index = places[index];
  return decision;
}

std::chrono::milliseconds RequestQueue::RetryDelay() const {
  constexpr std::chrono::milliseconds kShortest(10);
  return std::max(kShortest, std::chrono::ceil<std::chrono::milliseconds>(DelayEstimate()));
}

void RequestQueue::Close() {
  MutexLock lock(mutex_);
  closed_ = true;
  changed_.NotifyAll();
}

size_t RequestQueue::Flush(const absl::Status& status) {
  std::vector<Pending> flushed;
  {
    MutexLock lock(mutex_);
    while (!queue_.empty()) Scatter(queue_.begin(), flushed);
    changed_.NotifyAll();
    PublishTotals();
  }
  size_t waited = 0;
  for (Pending& pending : flushed) {
    if (!pending.delivery.Abandoned()) ++waited;
    TraceQueued(pending, clock_.Now(), status);
    pending.delivery.Complete(status);
  }
  return waited;
}

void RequestQueue::Expect(std::chrono::nanoseconds change) {
  MutexLock lock(mutex_);
  expected_ += change;
  PublishTotals();
}

std::chrono::nanoseconds RequestQueue::DelayEstimate() const {
  MutexLock lock(mutex_);
  return TimeFor(totals_.tokens) + expected_;
}

std::vector<Waiting> RequestQueue::View() const {
  std::vector<Waiting> view;
  view.reserve(std::min(queue_.size(), kLookAhead));
  for (const auto& [due, pending] : queue_) {
    if (view.size() == kLookAhead) break;
    view.push_back({.key = pending.key,
                    .rows = RowsOf(pending),
                    .enqueued = pending.enqueued,
                    .alone = pending.unit || IsLong(pending),
                    .waited = pending.next});
  }
  return view;
}

int64_t RequestQueue::RowsOf(const Pending& pending) {
  int64_t rows = pending.cost;
  for (const Pending& other : pending.rest) rows += other.cost;
  return rows;
}

// Returns whether the sequence by itself is worth all of a worker's threads, and makes a long pass.
bool RequestQueue::IsLong(const Pending& pending) const {
  return pending.cost > policy_.long_rows && workers_.time_for &&
         workers_.time_for(pending.tokens) > kLongPass;
}

ClosedBatch RequestQueue::Take(const Decision& decision) {
  ClosedBatch batch;
  batch.closed = last_batch_ = clock_.Now();
  // No memory may be missing once one is taken out: it would be answered under the lock. Who has
  // others that wait with it is taken alone.
  const auto first = std::next(queue_.begin(), static_cast<int64_t>(decision.take.front()));
  batch.sequences.reserve(decision.take.size() + first->second.rest.size());
  if (RowsOf(first->second) > policy_.max_tokens) {
    batch.beyond_budget = std::make_shared<BeyondBudget>(*this);
    ++beyond_budget_;
  }
  auto entry = queue_.begin();
  size_t at = 0;
  for (size_t index : decision.take) {
    std::advance(entry, index - at);
    const auto next = std::next(entry);
    Pending taken = Unlink(entry);
    if (taken.taken != nullptr) *taken.taken = {taken.turn, batch.closed};
    std::vector<Pending> rest = std::exchange(taken.rest, {});
    batch.sequences.push_back(std::move(taken));
    std::move(rest.begin(), rest.end(), std::back_inserter(batch.sequences));
    entry = next;
    at = index + 1;
  }
  if (queue_.empty()) {
    turns_.AllBegun();
  } else if (decision.take.front() == 0) {  // else they overtook those whose turn it is
    turns_.Begin(batch.sequences[0].turn);
  }
  batch.reason = decision.reason;
  // The sequences that are left may be another batch, for another worker.
  if (!queue_.empty()) changed_.NotifyOne();
  return batch;
}

void RequestQueue::PublishTotals() {
  const QueueState state{.requests = totals_.requests,
                         .sequences = totals_.sequences,
                         .tokens = totals_.tokens,
                         .bytes = totals_.bytes,
                         .delay = TimeFor(totals_.tokens) + expected_};
  metrics_.QueueChanged(published_, state);
  published_ = state;
}

}  // namespace linserve
