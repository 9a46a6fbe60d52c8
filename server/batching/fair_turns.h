#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "core/threads/clock.h"

namespace linserve {

// Says whose turn it is when callers ask for more than the workers can do. The turn of a sequence
// is the time at which its computation would begin if its caller had the workers to itself (the
// virtual clock of L. Zhang, SIGCOMM 1990). Taken in that order, callers with much work get equal
// shares of the workers, whoever sends more or longer sequences; and whoever asks for less than a
// share does not wait for the others' backlog. The time goes by the turns that are computed (as in
// start-time fair queuing, P. Goyal et al., SIGCOMM 1996), so that it does not matter whether the
// workers are as fast as was thought.
class FairTurns {
 public:
  // Returns the turn of those who are being computed.
  TimePoint Current(TimePoint now) const;

  // Returns the turn of the caller's next sequence.
  TimePoint Next(const std::string& caller, TimePoint now) const;

  // Called when a sequence of this turn begins to be computed.
  void Begin(TimePoint turn);
  // Called when no sequence waits any more.
  void AllBegun();

  // Says that the caller's sequences up to now are computed by `until`.
  void Reserve(const std::string& caller, TimePoint until, TimePoint now);

  // Says that sequences of the caller which would take this time are not computed after all.
  void GiveBack(const std::string& caller, std::chrono::nanoseconds time);

 private:
  std::optional<TimePoint> begun_;  // turn of the sequences being computed, while others wait
  std::map<std::string, TimePoint> until_;
  size_t forget_at_ = 1024;  // number of callers at which those without a backlog are forgotten
};

}  // namespace linserve
