#include "engine/sessions/session_budget.h"

#include <algorithm>
#include <utility>

#include "engine/sessions/session_table.h"

namespace linserve {

Callers HoldersOfMost(const std::map<std::string, int64_t>& counts) {
  int64_t most = 0;
  for (const auto& [caller, count] : counts) most = std::max(most, count);
  Callers holders;
  for (const auto& [caller, count] : counts) {
    if (count == most) holders.insert(caller);
  }
  return holders;
}

SessionRoom SessionBudget::RoomFor(const std::string& caller, int64_t bytes) const {
  const auto found = callers_.find(caller);
  // The limits are not compared with a sum, which could overflow.
  if (bytes > per_caller_ - (found == callers_.end() ? 0 : found->second)) {
    return SessionRoom::kShareFull;
  }
  return bytes > most_ - bytes_ ? SessionRoom::kFull : SessionRoom::kTaken;
}

SessionRoom SessionBudget::Take(const std::string& caller, int64_t bytes) {
  MutexLock lock(mutex_);
  const SessionRoom room = RoomFor(caller, bytes);
  if (room != SessionRoom::kTaken) return room;
  bytes_ += bytes;
  callers_[caller] += bytes;
  return room;
}

void SessionBudget::Give(const std::string& caller, int64_t bytes) {
  MutexLock lock(mutex_);
  bytes_ -= bytes;
  const auto found = callers_.find(caller);
  found->second -= bytes;
  if (found->second == 0) callers_.erase(found);
}

void SessionBudget::Join(std::weak_ptr<SessionTable> table) {
  MutexLock lock(evicting_);
  std::erase_if(tables_, [](const auto& known) { return known.expired(); });
  tables_.push_back(std::move(table));
}

void SessionBudget::MakeRoom(const std::string& caller, int64_t bytes) {
  if (bytes > std::min(per_caller_, most_)) return;  // nothing makes room for that
  MutexLock one_at_a_time(evicting_);
  while (true) {
    Callers whose = {caller};
    bool share_full = true;
    {
      MutexLock lock(mutex_);
      const SessionRoom room = RoomFor(caller, bytes);
      if (room == SessionRoom::kTaken) return;
      share_full = room == SessionRoom::kShareFull;
      if (!share_full) whose = HoldersOfMost(callers_);
    }
    if (!EvictOldest(&whose) && (share_full || !EvictOldest(nullptr))) return;
  }
}

bool SessionBudget::EvictOldest(const Callers* of) {
  std::shared_ptr<SessionTable> oldest;
  TimePoint least = TimePoint::max();
  for (const auto& known : tables_) {
    const std::shared_ptr<SessionTable> table = known.lock();
    const auto used = table == nullptr ? std::nullopt : table->OldestUse(of);
    if (!used || *used >= least) continue;
    oldest = table;
    least = *used;
  }
  if (oldest != nullptr) oldest->EvictOldest(of);
  return oldest != nullptr;
}

}  // namespace linserve
