#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "batching/request_queue.h"
#include "core/threads/mutex.h"
#include "telemetry/metrics.h"

namespace linserve {

// Keeps results of one model version by what was asked, so that identical sequences are computed
// once. Sequences that come later get the result at once; those that come meanwhile share the
// computation. Those that wait share an entry of the queue, which knows them by Pending::identity.
// The least recently used results go first. Thread-safe.
class ResultCache : public std::enable_shared_from_this<ResultCache> {
 public:
  // Keeps at most `max_bytes` of results and of what they are found by. `clock` must outlive the
  // cache.
  ResultCache(int64_t max_bytes, Clock& clock, ModelMetrics& metrics)
      : max_bytes_(max_bytes), clock_(clock), metrics_(metrics.shared_from_this()) {}

  ~ResultCache();

  // Returns the result on a hit. If an equal sequence is being computed, this one is taken over, to
  // be answered with it, and `pending` is empty. Otherwise it has its identity, and is to be
  // queued.
  std::optional<ItemResult> LookUp(std::optional<Pending>& pending);

  // Called with sequences that are about to be computed. Takes out those that have been computed
  // since they were admitted, or are being computed. Each that is left then answers for all who
  // share it and all who will join them, and is abandoned when all of those are.
  void BeginComputing(std::vector<Pending>& sequences);

 private:
  class Flight;
  struct Entry {
    std::shared_ptr<const Identity> identity;
    ItemResult result;
    int64_t bytes = 0;
  };
  using Entries = std::list<Entry>;

  std::optional<ItemResult> Find(const Pending& pending) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool JoinFlight(Pending& pending) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Begin(Pending& pending) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static int64_t BytesToKeep(const Identity& identity, const ItemResult& result);
  void Landed(const Flight& flight, const absl::StatusOr<ItemResult>& result);
  void Insert(const std::shared_ptr<const Identity>& identity, const ItemResult& result)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int64_t max_bytes_;
  Clock& clock_;
  const std::shared_ptr<ModelMetrics> metrics_;

  Mutex mutex_;
  Entries entries_ ABSL_GUARDED_BY(mutex_);  // most recently used first
  ByIdentity<Entries::iterator> found_ ABSL_GUARDED_BY(mutex_);
  ByIdentity<std::weak_ptr<Flight>> flights_ ABSL_GUARDED_BY(mutex_);
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace linserve
