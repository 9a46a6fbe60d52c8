#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "batching/request_queue.h"
#include "core/threads/mutex.h"
#include "engine/sessions/session_budget.h"
#include "engine/sessions/session_source.h"
#include "telemetry/metrics.h"

namespace linserve {

// So many chunks of a session may wait for the one that is computed.
inline constexpr size_t kMostWaitingChunks = 1024;

struct SessionLimits {
  int64_t max_bytes = INT64_MAX;            // of this table's states together
  std::shared_ptr<SessionBudget> budget{};  // what all tables share; null: the table has its own
  std::chrono::nanoseconds max_idle = std::chrono::minutes(10);  // between two chunks of a session
};

// Holds a chunk as it comes. One with a fault is not to be computed, but has its place among the
// others.
struct ArrivedChunk {
  Pending pending;
  absl::Status fault;
};

// Keeps the sessions of one model version, by caller and id. One chunk of a session is computed at
// a time; chunks that arrive meanwhile wait for it, in a line that is bounded and counted with the
// queue. Where one fails or is refused, those behind it fail, too, since they follow rows that were
// not read, up to one that starts the session. A start that fails leaves the session as it was.
// Where there is no room for a new session, the one that was not used for longest goes, of the
// caller who has the most, unless a chunk of it is being computed. Thread-safe.
class SessionTable : public std::enable_shared_from_this<SessionTable> {
 public:
  // Has a chunk computed whose session is known (Item::session), or leaves it where it is refused.
  // `next` is true if the calling worker has just computed another chunk of the session.
  using Compute = std::function<absl::Status(Pending& chunk, bool next)>;
  // Takes room for a chunk that waits for others, or refuses it.
  using Hold = std::function<absl::Status(Pending& chunk)>;

  // `signature` and `clock` must outlive the table.
  SessionTable(const SessionLimits& limits, std::shared_ptr<const SessionSource> source,
               const Signature& signature, Compute compute, Hold hold, Clock& clock,
               ModelMetrics& metrics);
  // The sessions that are left are lost with their model version.
  ~SessionTable();
  SessionTable(const SessionTable&) = delete;
  SessionTable& operator=(const SessionTable&) = delete;

  // Takes over the chunks of a request, valid but for their faults, to be computed or answered. The
  // answer is FAILED_PRECONDITION if a chunk does not go on where its session stands, with
  // ResumeFrom(), or follows one that was refused; INVALID_ARGUMENT if its saved session cannot be
  // restored or the session becomes too long; RESOURCE_EXHAUSTED if there is no room.
  void Take(std::vector<ArrivedChunk> chunks);

  // Answers all that waits for a chunk before it, and what comes from now on; returns how many
  // sequences those were for which a caller still waited.
  size_t Flush(const absl::Status& status);

  // Forgets the sessions that have not been used for too long.
  void Expire();

  // Says when the session was used that was not used for longest, of these callers; nullopt: all
  // are being computed.
  std::optional<TimePoint> OldestUse(const Whose& whose);
  // Evicts that session, for one of another model.
  void EvictOldest(const Whose& whose);

  // Forgets the sessions that were on a device that is lost. Those that are being computed are
  // looked at when their chunk ends.
  void DeviceLost();

 private:
  class ChunkSink;
  using Key = std::pair<std::string, std::string>;  // caller and id

  struct Session {
    std::shared_ptr<SessionState> state;     // null: its first chunk has not been begun
    std::shared_ptr<SessionState> before{};  // what it was until the chunk that starts it again
    bool fresh = false;                      // the chunk that is computed has begun the state
    bool computing = false;
    TimePoint used{};
    std::list<Key>::iterator place{};  // its place in idle_, if it is not computing
    std::deque<Pending> waiting{};
    absl::Status tail{};  // not OK: the chunk behind these was refused, and so are those behind it
  };
  using Sessions = std::map<Key, Session>;

  // Says what is known of a session that is kept no longer.
  struct Former {
    int64_t position = 0;
    SessionEnd reason = SessionEnd::kEnded;
  };

  // Says how the computation of a chunk ended.
  struct Ending {
    bool computed = false;
    bool start = false;  // the chunk starts its session
    bool over = false;   // the session ends with it
  };

  // Holds states whose memory is to be freed once the lock is given back.
  using Freed = std::vector<std::shared_ptr<SessionState>>;

  absl::Status GetInLine(const Key& key, Pending& chunk, bool& begins);
  absl::Status HoldFirst(const Key& key, Pending& chunk);
  absl::Status MayFollow(const Key& key, const SessionChunk& chunk, bool& begins)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Claim(Session& session) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Refused(const Key& key, const absl::Status& fault);
  void Begin(const Key& key, Pending chunk, bool next);
  std::optional<Pending> Ended(const Key& key, const Ending& ending);
  static std::deque<Pending> TakeFailed(std::deque<Pending>& waiting);
  void Settle(const Key& key, Session& session, const Ending& ending, Freed& freed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Status Enter(const Key& key, Item& item);
  absl::Status Open(Session& session, const Key& key, std::shared_ptr<SessionState> state,
                    Freed& freed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status TakeRoom(const std::string& caller, int64_t bytes, Freed& freed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Unknown(const Key& key) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Rest(const Key& key, Session& session) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Close(const Key& key, std::shared_ptr<SessionState> state, SessionEnd reason, Freed& freed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Drop(const Key& key, Session& session, SessionEnd reason, Freed& freed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropIdle(std::list<Key>::iterator place, SessionEnd reason, Freed& freed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Remember(const Key& key, const Former& former) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::list<Key>::iterator Oldest(const Whose& whose) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const SessionLimits limits_;
  const std::shared_ptr<SessionBudget> budget_;
  const std::shared_ptr<const SessionSource> source_;
  const Signature& signature_;
  const Compute compute_;
  const Hold hold_;
  Clock& clock_;
  const std::shared_ptr<ModelMetrics> metrics_;

  Mutex mutex_;
  Sessions sessions_ ABSL_GUARDED_BY(mutex_);
  std::list<Key> idle_ ABSL_GUARDED_BY(mutex_);  // least recently used first
  std::map<Key, Former> former_ ABSL_GUARDED_BY(mutex_);
  std::deque<Key> former_keys_ ABSL_GUARDED_BY(mutex_);            // oldest first
  int64_t count_ ABSL_GUARDED_BY(mutex_) = 0;                      // states
  std::map<std::string, int64_t> counts_ ABSL_GUARDED_BY(mutex_);  // by callers that have any
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status flushed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace linserve
