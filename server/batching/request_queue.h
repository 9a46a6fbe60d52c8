#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "batching/clock.h"
#include "batching/decide.h"
#include "batching/fair_turns.h"
#include "core/item.h"
#include "core/mutex.h"
#include "core/priority.h"
#include "telemetry/metrics.h"

namespace linserve {

// What may wait at most, over all requests.
struct QueueLimits {
  int64_t max_sequences = 16384;
  int64_t max_tokens = 4 << 20;
  int64_t max_bytes = int64_t{1} << 30;
};

// The wait by which a sequence makes up for a priority that is one step lower.
inline constexpr std::chrono::seconds kHeadStart(10);

// Those who compute what waits.
struct Workers {
  int64_t count = 1;
  // How long one of them takes; zero while that is unknown.
  std::function<std::chrono::nanoseconds(int64_t tokens)> time_for{};
};

// The request that a sequence is part of.
struct RequestOrigin {
  std::string request_id;
  std::string trace_id;  // "" if its caller has none
  std::string caller;    // who shares the workers fairly with the others
};

// One sequence that waits to be computed.
struct Pending {
  Item item;
  std::string key;     // Padder::Key
  int64_t cost = 0;    // Padder::Cost
  int64_t tokens = 0;  // PackedRows
  int64_t bytes = 0;   // of its inputs
  bool unit = false;   // to be computed with all others of its key, and with nothing else
  Priority priority = Priority::kNormal;
  TimePoint enqueued;
  TimePoint deadline = TimePoint::max();
  std::shared_ptr<const RequestOrigin> origin;
  Delivery delivery;
  std::shared_ptr<int64_t> siblings;     // the queue's own: how many of the request still wait
  TimePoint turn{};                      // the queue's own: see FairTurns
  std::shared_ptr<ResultSink> flight{};  // the cache's own: what `delivery` delivers to
};

struct ClosedBatch {
  std::vector<Pending> sequences;  // in the order in which they were due
  CloseReason reason = CloseReason::kIdle;
  TimePoint closed;
};

// The bounded queue between the callers and the workers of one model. Thread-safe: many push, many
// pop. Callers have their turns in fairness (FairTurns). Those of a higher priority go first, but
// overtake nobody whose turn was kHeadStart earlier; and where there is no room for them, those who
// would be last are displaced, with RESOURCE_EXHAUSTED.
// Whoever no longer waits (cancelled, deadline past or too near) is answered and dropped when a
// batch is formed or when room is needed, and is never part of a batch.
class RequestQueue {
 public:
  // `clock` and `metrics` must outlive the queue.
  RequestQueue(const QueueLimits& limits, const BatchPolicy& policy, Clock& clock,
               ModelMetrics& metrics, Workers workers = {});

  // Never blocks. All of the request's sequences or none: takes them (leaving `request` empty)
  // only if the result is OK. RESOURCE_EXHAUSTED names the limit that it met, or says that the
  // deadline leaves no time for what waits before it; UNAVAILABLE that the queue is closed.
  absl::Status Push(std::vector<Pending>& request);

  // Takes one sequence more, beyond the limits if need be, and even while it is closed: it was
  // accepted together with one before it, which a worker has just computed. REQUIRES: called by a
  // worker before it pops again.
  void PushNext(Pending next);

  // Blocks until a batch is due; nullopt once the queue is closed and empty.
  std::optional<ClosedBatch> Pop();

  // A batch that is due now; nullopt at once if there is none.
  std::optional<ClosedBatch> PopDue();

  // A batch of sequences that cost at most `most_rows` each, whoever waits before them; nullopt at
  // once if there are none. For a worker in the midst of a sequence that is far longer.
  std::optional<ClosedBatch> PopShort(int64_t most_rows);

  // Lets nobody in any more; what waits is still popped.
  void Close();

  // Answers all that waits with `status`; returns how many sequences that were.
  size_t Flush(const absl::Status& status);

  // The wait of a sequence that arrives now and is due after all others.
  std::chrono::nanoseconds DelayEstimate() const;

  // How long one that is refused should wait before it comes again.
  std::chrono::milliseconds RetryDelay() const;

 private:
  // By the time from which a sequence is due: FIFO among the equal ones of a caller.
  using Queue = std::multimap<TimePoint, Pending>;

  struct Totals {
    int64_t requests = 0;
    int64_t sequences = 0;
    int64_t tokens = 0;
    int64_t bytes = 0;
  };

  struct Admission {
    absl::Status status;
    RejectReason reason = RejectReason::kQueue;  // if the status is not OK
  };

  static Totals TotalsOf(const std::vector<Pending>& sequences);
  Admission Admit(const Totals& added) const LINSERVE_REQUIRES(mutex_);
  bool Fits(const Totals& added, const Totals& waiting) const;
  Admission MakeRoom(const std::vector<Pending>& request, std::vector<Pending>& departed,
                     std::vector<Pending>& displaced) LINSERVE_REQUIRES(mutex_);
  bool Displace(TimePoint due, const Totals& added, std::vector<Pending>& displaced)
      LINSERVE_REQUIRES(mutex_);
  void SetTurns(std::vector<Pending>& request) const LINSERVE_REQUIRES(mutex_);
  void Enqueue(std::vector<Pending>& request) LINSERVE_REQUIRES(mutex_);

  std::chrono::nanoseconds TimeFor(int64_t tokens) const;
  std::chrono::nanoseconds WaitBefore(const Pending& pending) const LINSERVE_REQUIRES(mutex_);
  std::chrono::nanoseconds BatchTime(const Pending& pending) const LINSERVE_REQUIRES(mutex_);
  bool IsHopeless(const Pending& pending) const LINSERVE_REQUIRES(mutex_);
  void RemoveDeparted(size_t most, std::vector<Pending>& departed) LINSERVE_REQUIRES(mutex_);
  std::vector<Waiting> View() const LINSERVE_REQUIRES(mutex_);
  Decision DecideAmong(int64_t most_rows) const LINSERVE_REQUIRES(mutex_);
  std::optional<ClosedBatch> PopAtOnce(int64_t most_rows);
  ClosedBatch Take(const Decision& decision) LINSERVE_REQUIRES(mutex_);
  void Unlink(Queue::iterator entry, std::vector<Pending>& target) LINSERVE_REQUIRES(mutex_);
  void GiveUp(Queue::iterator entry, std::vector<Pending>& target) LINSERVE_REQUIRES(mutex_);
  void PublishTotals() LINSERVE_REQUIRES(mutex_);
  void AnswerDeparted(std::vector<Pending>& departed);
  void AnswerDisplaced(std::vector<Pending>& displaced);

  const QueueLimits limits_;
  const BatchPolicy policy_;
  Clock& clock_;
  ModelMetrics& metrics_;
  const Workers workers_;

  mutable Mutex mutex_;
  CondVar changed_;
  Queue queue_ LINSERVE_GUARDED_BY(mutex_);
  Totals totals_ LINSERVE_GUARDED_BY(mutex_);
  FairTurns turns_ LINSERVE_GUARDED_BY(mutex_);
  TimePoint next_search_ LINSERVE_GUARDED_BY(mutex_){};  // for those who have departed
  TimePoint last_batch_ LINSERVE_GUARDED_BY(mutex_){};   // taken
  bool closed_ LINSERVE_GUARDED_BY(mutex_) = false;
};

}  // namespace linserve
