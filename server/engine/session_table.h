#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "batching/request_queue.h"
#include "core/mutex.h"
#include "engine/model.h"
#include "telemetry/metrics.h"

namespace linserve {

struct SessionLimits {
  int64_t max_bytes = int64_t{1} << 30;                          // of all states
  std::chrono::nanoseconds max_idle = std::chrono::minutes(10);  // between two chunks
};

// The sessions of one model version, by caller and id. One chunk of a session is computed at a
// time; those that arrive meanwhile wait for it, and fail if it does, since they follow rows that
// were not read. Where there is no room for a new session, the one that was not used for longest
// goes, unless a chunk of it is computed. Thread-safe.
class SessionTable : public std::enable_shared_from_this<SessionTable> {
 public:
  // Has a chunk computed whose session is known (Item::session). `next`: another chunk of the
  // session has just been computed, by the worker that calls.
  using Compute = std::function<void(Pending chunk, bool next)>;

  // `signature`, `clock` and `metrics` must outlive the table.
  SessionTable(const SessionLimits& limits, std::shared_ptr<const SessionSource> source,
               const Signature& signature, Compute compute, Clock& clock, ModelMetrics& metrics);
  ~SessionTable();
  SessionTable(const SessionTable&) = delete;
  SessionTable& operator=(const SessionTable&) = delete;

  // Takes a valid item with a chunk over, to be computed or answered: with FAILED_PRECONDITION, and
  // ResumeFrom(), if it does not go on where its session stands, INVALID_ARGUMENT if its saved
  // session is none or if it becomes too long, RESOURCE_EXHAUSTED if there is no room.
  void Take(Pending chunk);

  // Forgets the sessions that have not been used for too long.
  void Expire();

  // Forgets all sessions: a device on which states may lie is lost.
  void DeviceLost();

 private:
  class Turn;
  using Key = std::pair<std::string, std::string>;  // caller and id

  struct Session {
    std::shared_ptr<SessionState> state;  // null: its first chunk has not been begun
    int64_t bytes = 0;
    bool computing = false;
    bool lost = false;
    TimePoint used{};
    std::list<Key>::iterator place{};  // in idle_, if it is not computing
    std::deque<Pending> waiting{};
  };
  using Sessions = std::map<Key, Session>;

  // What is known of a session that is kept no longer.
  struct Former {
    int64_t position = 0;
    SessionEnd reason = SessionEnd::kEnded;
  };

  // States whose memory is to be freed once the lock is given back.
  using Freed = std::vector<std::shared_ptr<SessionState>>;

  void Begin(const Key& key, Pending chunk, bool next);
  absl::Status Enter(const Key& key, Item& item);
  absl::Status Open(Session& session, const Key& key, std::shared_ptr<SessionState> state,
                    Freed& freed) LINSERVE_REQUIRES(mutex_);
  absl::Status Unknown(const Key& key) const LINSERVE_REQUIRES(mutex_);
  void Ended(const Key& key, bool computed, bool over);
  void Rest(const Key& key, Session& session) LINSERVE_REQUIRES(mutex_);
  void Drop(const Key& key, Session& session, SessionEnd reason, Freed& freed)
      LINSERVE_REQUIRES(mutex_);
  void DropOldest(SessionEnd reason, Freed& freed) LINSERVE_REQUIRES(mutex_);
  void Remember(const Key& key, const Former& former) LINSERVE_REQUIRES(mutex_);
  void Publish() LINSERVE_REQUIRES(mutex_);

  const SessionLimits limits_;
  const std::shared_ptr<const SessionSource> source_;
  const Signature& signature_;
  const Compute compute_;
  Clock& clock_;
  ModelMetrics& metrics_;

  Mutex mutex_;
  Sessions sessions_ LINSERVE_GUARDED_BY(mutex_);
  std::list<Key> idle_ LINSERVE_GUARDED_BY(mutex_);  // least recently used first
  std::map<Key, Former> former_ LINSERVE_GUARDED_BY(mutex_);
  std::deque<Key> former_keys_ LINSERVE_GUARDED_BY(mutex_);  // oldest first
  int64_t count_ LINSERVE_GUARDED_BY(mutex_) = 0;            // of those with a state
  int64_t bytes_ LINSERVE_GUARDED_BY(mutex_) = 0;
};

}  // namespace linserve
