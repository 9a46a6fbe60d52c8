#include "batching/fair_turns.h"

#include <algorithm>

namespace linserve {
namespace {

constexpr std::chrono::seconds kMostBehind(10);

}  // namespace

TimePoint FairTurns::Current(TimePoint now) const {
  // The turn is not further behind the clock: else priorities would not age where turns stand
  // still.
  return begun_ ? std::clamp(*begun_, now - kMostBehind, now) : now;
}

TimePoint FairTurns::Next(const std::string& caller, TimePoint now) const {
  const TimePoint turn = Current(now);
  const auto found = until_.find(caller);
  return found == until_.end() ? turn : std::max(turn, found->second);
}

void FairTurns::Begin(TimePoint turn) { begun_ = begun_ ? std::max(*begun_, turn) : turn; }

void FairTurns::AllBegun() {
  begun_.reset();
  until_.clear();
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
