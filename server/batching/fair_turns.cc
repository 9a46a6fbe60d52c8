#include "batching/fair_turns.h"

#include <algorithm>

namespace linserve {

TimePoint FairTurns::Next(const std::string& caller, TimePoint now) const {
  const auto found = until_.find(caller);
  return found == until_.end() ? now : std::max(now, found->second);
}

void FairTurns::Reserve(const std::string& caller, TimePoint until, TimePoint now) {
  until_[caller] = until;
  if (until_.size() < forget_at_) return;
  std::erase_if(until_, [now](const auto& entry) { return entry.second <= now; });
  forget_at_ = std::max<size_t>(1024, 2 * until_.size());
}

void FairTurns::GiveBack(const std::string& caller, std::chrono::nanoseconds time) {
  const auto found = until_.find(caller);
  if (found != until_.end()) found->second -= time;
}

}  // namespace linserve
