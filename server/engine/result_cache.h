#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "batching/request_queue.h"
#include "core/mutex.h"
#include "telemetry/metrics.h"

namespace linserve {

// Results of one model version by what was asked, so that identical sequences are computed once:
// those that come later get the result at once, those that come meanwhile share the computation.
// The least recently used go first. Thread-safe.
class ResultCache : public std::enable_shared_from_this<ResultCache> {
 public:
  // `max_bytes` of results and of what they are found by. `clock` and `metrics` must outlive the
  // cache.
  ResultCache(int64_t max_bytes, Clock& clock, ModelMetrics& metrics)
      : max_bytes_(max_bytes), clock_(clock), metrics_(metrics) {}

  // A hit: the result. Otherwise the sequence is either taken over, to be answered with an equal
  // one that is being computed, and `pending` is empty; or it is the first of its kind, and to be
  // computed: `pending` then answers for all that will share its result, and is abandoned when all
  // of their callers are.
  std::optional<ItemResult> Admit(std::optional<Pending>& pending);

  // `pending` is a first one that cannot be computed: answers those that joined it with `status`.
  // Its own caller is answered too, unless the whole request is refused.
  static void Refuse(Pending& pending, const absl::Status& status, bool with_request);

 private:
  class Flight;
  struct Entry {
    std::string key;
    ItemResult result;
    int64_t bytes = 0;
  };
  using Entries = std::list<Entry>;

  void Landed(const std::string& key, const absl::StatusOr<ItemResult>& result);
  void Insert(const std::string& key, const ItemResult& result) LINSERVE_REQUIRES(mutex_);

  const int64_t max_bytes_;
  Clock& clock_;
  ModelMetrics& metrics_;

  Mutex mutex_;
  Entries entries_ LINSERVE_GUARDED_BY(mutex_);  // most recently used first
  std::unordered_map<std::string, Entries::iterator> found_ LINSERVE_GUARDED_BY(mutex_);
  std::unordered_map<std::string, std::weak_ptr<Flight>> flights_ LINSERVE_GUARDED_BY(mutex_);
  int64_t bytes_ LINSERVE_GUARDED_BY(mutex_) = 0;
};

}  // namespace linserve
