#include <algorithm>

#include "core/status/limit_met.h"
#include "core/status/retry_delay.h"
#include "engine/sessions/session_table.h"

namespace linserve {
namespace {

// A session computes for about so long at least: until then there may be no room.
constexpr std::chrono::milliseconds kRetryDelay(100);

}  // namespace

// Takes room for a session of this caller. Where there is none, the one that was not used for
// longest is evicted: the caller's own, if it is the caller's share that is used up, and where the
// model's room is, of those who have the most.
absl::Status SessionTable::TakeRoom(const std::string& caller, int64_t bytes, Freed& freed) {
  while (true) {
    SessionRoom room = SessionRoom::kFull;
    if (bytes <= limits_.max_bytes - bytes_) room = budget_->Take(caller, bytes);
    if (room == SessionRoom::kTaken) return absl::OkStatus();
    const bool share = room == SessionRoom::kShareFull;
    const Whose own = [&caller](const std::string& holder) { return holder == caller; };
    auto oldest = Oldest(share ? own : HasTheMost(counts_));
    if (oldest == idle_.end() && !share) oldest = Oldest({});
    if (oldest != idle_.end()) {
      DropIdle(oldest, SessionEnd::kEvicted, freed);
      continue;
    }
    metrics_->Rejected(RejectReason::kSessions);
    return RetryAfter(
        LimitMet("all sessions are being computed, of this model " + std::to_string(count_) +
                     " with " + std::to_string(bytes_) + " bytes",
                 bytes, share ? "max_session_bytes_per_caller" : "max_session_bytes",
                 share ? budget_->MostOfACaller() : std::min(limits_.max_bytes, budget_->most())),
        kRetryDelay);
  }
}

// Returns the idle session that was not used for longest, of these callers.
std::list<SessionTable::Key>::iterator SessionTable::Oldest(const Whose& whose) {
  return std::find_if(idle_.begin(), idle_.end(),
                      [&whose](const Key& key) { return !whose || whose(key.first); });
}

std::optional<TimePoint> SessionTable::OldestUse(const Whose& whose) {
  MutexLock lock(mutex_);
  const auto oldest = Oldest(whose);
  if (oldest == idle_.end()) return std::nullopt;
  return sessions_.at(*oldest).used;
}

void SessionTable::EvictOldest(const Whose& whose) {
  Freed freed;
  MutexLock lock(mutex_);
  const auto oldest = Oldest(whose);
  if (oldest != idle_.end()) DropIdle(oldest, SessionEnd::kEvicted, freed);
}

}  // namespace linserve
