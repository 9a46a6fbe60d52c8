#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "batching/decide.h"
#include "batching/fair_turns.h"
#include "batching/identity.h"
#include "core/sequence/item.h"
#include "core/sequence/priority.h"
#include "core/threads/clock.h"
#include "core/threads/mutex.h"
#include "core/threads/newest_first.h"
#include "telemetry/metrics.h"
#include "telemetry/trace/trace_context.h"

namespace linserve {

// Bounds what may wait, over all requests.
struct QueueLimits {
  int64_t max_sequences = 32768;  // more than a request has, with the query of a ranking
  int64_t max_tokens = 4 << 20;
  int64_t max_bytes = int64_t{1} << 30;
};

// A sequence that has waited this long makes up for a priority that is one step lower.
inline constexpr std::chrono::seconds kHeadStart(10);

// Describes those who compute what waits.
struct Workers {
  int64_t count = 1;
  // Returns how long one worker takes; zero while that is unknown.
  std::function<std::chrono::nanoseconds(int64_t tokens)> time_for{};
  // So many at most compute a sequence that alone is more than the budget of a batch: those who
  // share the processors would not be done any sooner with two, which take twice the memory.
  int64_t beyond_budget = std::numeric_limits<int64_t>::max();
};

// Names the request that a sequence is part of.
struct RequestOrigin {
  std::string request_id;
  TraceContext trace;
  std::string caller;  // who shares the workers fairly with the others
};

// Says when a sequence was taken out of the queue, and which turn it had.
struct TurnTaken {
  TimePoint turn{};
  TimePoint at{};
};

// Holds one sequence that waits to be computed.
struct Pending {
  Item item;
  std::string key{};   // Padder::Key
  int64_t cost = 0;    // Padder::Cost
  int64_t tokens = 0;  // PackedRows
  int64_t bytes = 0;   // bytes of its inputs
  bool unit = false;   // computed with `rest`, and with nothing else
  bool next = false;   // the queue's own: it came by PushNext(), and need not wait for company
  Priority priority = Priority::kNormal;
  TimePoint enqueued{};
  TimePoint deadline = TimePoint::max();
  std::shared_ptr<const RequestOrigin> origin{};
  Delivery delivery;
  std::shared_ptr<int64_t> siblings{};  // the queue's own: how many of the request still wait
  TimePoint turn{};                     // the queue's own: see FairTurns
  // Is where the queue notes the turn for what goes on with this one by PushNext(), and has it from
  // there. Null: nothing goes on.
  std::shared_ptr<TurnTaken> taken{};
  // Sequences of equal identity are computed as one. Null: it shares with none.
  std::shared_ptr<const Identity> identity{};
  std::vector<Pending> sharers{};  // the queue's own: later ones of its identity
  std::vector<Pending> rest{};     // the others of its unit, as long as it waits; has no identity
  std::shared_ptr<void> room{};    // the queue's own: see Hold()
};

// Returns the time from which the sequence is due, once it has its turn.
inline TimePoint DueTime(const Pending& pending) {
  return pending.turn + kHeadStart * static_cast<int>(pending.priority);
}

struct ClosedBatch {
  std::vector<Pending> sequences;  // in the order in which they were due
  CloseReason reason = CloseReason::kIdle;
  TimePoint closed;
  std::shared_ptr<void> beyond_budget{};  // the queue's own: see Workers
};

// Queues what the callers of one model send until its workers take it, up to a bound. Thread-safe:
// many push, many pop. Callers have their turns in fairness (FairTurns). Those of a higher priority
// go first, but overtake nobody whose turn was kHeadStart earlier; and where there is no room for
// them, those who would be last are displaced, with RESOURCE_EXHAUSTED. Whoever no longer waits
// (cancelled, deadline past or too near) is answered and dropped when a batch is formed or when
// room is needed, and is never part of a batch.
//
// Sequences of equal identity share one entry, which counts once. It is due when the first of those
// is who still wait, and each of them is dropped by itself. A unit is one entry, too: it waits, is
// dropped and is taken as a whole.
class RequestQueue {
 public:
  // `clock` and `metrics` must outlive the queue.
  RequestQueue(const QueueLimits& limits, const BatchPolicy& policy, Clock& clock,
               ModelMetrics& metrics, Workers workers = {});
  ~RequestQueue();

  // Takes all of the request's sequences or none; never blocks. `request` is left empty only if the
  // result is OK. RESOURCE_EXHAUSTED names the limit that was met, or says that the deadline leaves
  // no time for what waits before it; UNAVAILABLE says that the queue is closed.
  absl::Status Push(std::vector<Pending>& request);

  // Lets a sequence wait elsewhere, for others before it: it counts as if it were queued for as
  // long as `room` lives, which is set. Refuses it as Push() does. REQUIRES: `room` goes before the
  // queue.
  absl::Status Hold(Pending& pending);

  // Takes one sequence more, beyond the limits if need be, and even while the queue is closed: it
  // was accepted together with one before it, which a worker has just computed. It goes on in the
  // turn of that one, whatever its caller has sent since. `next`, which holds it alone, is left
  // empty. REQUIRES: called by a worker before it pops again.
  void PushNext(std::vector<Pending>& next);

  // Blocks until a batch is due; nullopt once the queue is closed and empty.
  std::optional<ClosedBatch> Pop();

  // Returns a batch that is due now; nullopt at once if there is none.
  std::optional<ClosedBatch> PopDue();

  // Returns a batch of sequences that cost at most `most_rows` together, whoever waits before them;
  // nullopt at once if there are none. It is for a worker in the midst of a sequence that is far
  // longer.
  std::optional<ClosedBatch> PopShort(int64_t most_rows);

  // Lets nobody in any more; what waits is still popped.
  void Close();

  // Answers all that waits with `status`; returns how many sequences that were for which a caller
  // still waits.
  size_t Flush(const absl::Status& status);

  // Says that what is on its way here, as texts that become tokens, takes so much time more, or
  // less again once it has arrived.
  void Expect(std::chrono::nanoseconds change);

  // Bounds what may wait from now on. What waits already goes on waiting.
  void SetLimits(const QueueLimits& limits);
  QueueLimits limits() const;

  // Answers and drops whoever no longer waits, and returns TimePoint::max(). Where that was done
  // just now, returns when it can be done again.
  TimePoint DropDeparted();

  // Estimates the wait of a sequence that arrives now and is due after all others.
  std::chrono::nanoseconds DelayEstimate() const;

  // Says how long a sequence that is refused should wait before it comes again.
  std::chrono::milliseconds RetryDelay() const;

 private:
  // Orders sequences by the time from which they are due: equal ones of a caller are first in,
  // first out.
  using Queue = std::multimap<TimePoint, Pending>;

  struct Totals {
    int64_t requests = 0;
    int64_t sequences = 0;
    int64_t tokens = 0;
    int64_t bytes = 0;

    Totals& operator+=(const Totals& added);
    Totals& operator-=(const Totals& left);
  };

  class BeyondBudget;

  struct Admission {
    absl::Status status;
    RejectReason reason = RejectReason::kQueue;  // meaningless if the status is OK
  };

  absl::Status TakeIn(std::vector<Pending>& request, bool held);
  void ShareIdentities(std::vector<Pending>& request) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static Totals SizeOf(const Pending& pending);
  Totals TotalsOf(const std::vector<Pending>& request) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GiveBack(const Totals& held);
  Admission Admit(const Totals& added) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Fits(const Totals& added, const Totals& waiting) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool LetDepartedGo(const Totals& added, std::vector<Pending>& departed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Admission MakeRoom(const std::vector<Pending>& request, const Totals& added,
                     std::vector<Pending>& displaced) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Displace(const std::vector<Pending>& request, const Totals& added,
                std::vector<Pending>& displaced) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetTurns(std::vector<Pending>& request) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReserveTurns(const std::vector<Pending>& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void KeepTurn(Pending& next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Enqueue(std::vector<Pending>& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Joins(const Pending& pending) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Insert(Pending& pending) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Join(Pending& pending) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Lead(Queue::iterator entry, Pending& pending) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropHopeless(Queue::iterator entry, std::vector<Pending>& departed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Leave(Pending& pending) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::chrono::nanoseconds TimeFor(int64_t tokens) const;
  std::chrono::nanoseconds WaitBefore(const Pending& pending) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::chrono::nanoseconds BatchTime(const Pending& pending) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsHopeless(const Pending& pending) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RemoveDeparted(size_t most, std::vector<Pending>& departed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<Waiting> View() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Decision DecideAmong(int64_t most_rows) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsLong(const Pending& pending) const;
  static int64_t RowsOf(const Pending& pending);
  std::optional<ClosedBatch> PopAtOnce(int64_t most_rows);
  ClosedBatch Take(const Decision& decision) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Pending Unlink(Queue::iterator entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Scatter(Queue::iterator entry, std::vector<Pending>& target)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GiveUp(Queue::iterator entry, std::vector<Pending>& target)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PublishTotals() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AnswerDeparted(std::vector<Pending>& departed);
  void AnswerDisplaced(std::vector<Pending>& displaced);

  const BatchPolicy policy_;
  Clock& clock_;
  ModelMetrics& metrics_;
  const Workers workers_;

  mutable Mutex mutex_;
  NewestFirst changed_ ABSL_GUARDED_BY(mutex_);
  QueueLimits limits_ ABSL_GUARDED_BY(mutex_);
  Queue queue_ ABSL_GUARDED_BY(mutex_);
  ByIdentity<Queue::iterator> shared_ ABSL_GUARDED_BY(mutex_);  // entries that have one
  Totals totals_ ABSL_GUARDED_BY(mutex_);
  int64_t held_tokens_ ABSL_GUARDED_BY(mutex_) = 0;  // of the totals, waiting elsewhere: see Hold()
  QueueState published_ ABSL_GUARDED_BY(mutex_);     // what the metrics show of this queue
  std::chrono::nanoseconds expected_ ABSL_GUARDED_BY(mutex_){0};  // see Expect()
  FairTurns turns_ ABSL_GUARDED_BY(mutex_);
  TimePoint next_search_ ABSL_GUARDED_BY(mutex_){};    // when departed callers are next looked for
  TimePoint last_batch_ ABSL_GUARDED_BY(mutex_){};     // when a batch was last taken
  int64_t beyond_budget_ ABSL_GUARDED_BY(mutex_) = 0;  // batches that are computed: see Workers
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace linserve
