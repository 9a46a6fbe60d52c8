#include "engine/sessions/session_budget.h"

#include <algorithm>
#include <utility>

#include "engine/sessions/session_table.h"

namespace linserve {

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
  const auto room_for = [&] {
    MutexLock lock(mutex_);
    return RoomFor(caller, bytes);
  };
  if (bytes > std::min(per_caller_, most_)) return;  // nothing makes room for that
  MutexLock one_at_a_time(evicting_);
  for (SessionRoom room = room_for(); room != SessionRoom::kTaken; room = room_for()) {
    const std::string* const whose = room == SessionRoom::kShareFull ? &caller : nullptr;
    std::shared_ptr<SessionTable> oldest;
    TimePoint least = TimePoint::max();
    for (const auto& known : tables_) {
      const std::shared_ptr<SessionTable> table = known.lock();
      const auto used = table == nullptr ? std::nullopt : table->OldestUse(whose);
      if (!used || *used >= least) continue;
      oldest = table;
      least = *used;
    }
    if (oldest == nullptr) return;
    oldest->EvictOldest(whose);
  }
}

}  // namespace linserve
