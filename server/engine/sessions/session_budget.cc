#include "engine/sessions/session_budget.h"

#include <algorithm>
#include <utility>

#include "engine/sessions/session_table.h"

namespace linserve {

int64_t MostOf(const std::map<std::string, int64_t>& by_caller) {
  int64_t most = 0;
  for (const auto& [caller, own] : by_caller) most = std::max(most, own);
  return most;
}

Whose HasTheMost(const std::map<std::string, int64_t>& by_caller) {
  return [&by_caller, most = MostOf(by_caller)](const std::string& caller) {
    return by_caller.at(caller) == most;
  };
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

int64_t SessionBudget::Most() {
  MutexLock lock(mutex_);
  return MostOf(callers_);
}

int64_t SessionBudget::BytesOf(const std::string& caller) {
  MutexLock lock(mutex_);
  const auto found = callers_.find(caller);
  return found == callers_.end() ? 0 : found->second;
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
    int64_t most = 0;
    bool share_full = true;
    {
      MutexLock lock(mutex_);
      const SessionRoom room = RoomFor(caller, bytes);
      if (room == SessionRoom::kTaken) return;
      share_full = room == SessionRoom::kShareFull;
      if (!share_full) most = MostOf(callers_);
    }
    const bool evicted = EvictOldest([&](const std::string& holder) {
      return share_full ? holder == caller : BytesOf(holder) == most;
    });
    if (evicted) continue;
    if (share_full) return;
    // What callers have may have changed meanwhile, so that it was nobody who had that much.
    if (most == Most() && !EvictOldest({})) return;
  }
}

bool SessionBudget::EvictOldest(const Whose& whose) {
  std::shared_ptr<SessionTable> oldest;
  TimePoint least = TimePoint::max();
  for (const auto& known : tables_) {
    const std::shared_ptr<SessionTable> table = known.lock();
    const auto used = table == nullptr ? std::nullopt : table->OldestUse(whose);
    if (!used || *used >= least) continue;
    oldest = table;
    least = *used;
  }
  if (oldest != nullptr) oldest->EvictOldest(whose);
  return oldest != nullptr;
}

}  // namespace linserve
