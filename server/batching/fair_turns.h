#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "batching/clock.h"

namespace linserve {

// Whose turn it is when callers ask for more than the workers can do: each sequence has the time
// for its turn at which its computation would begin if its caller had the workers to itself (the
// virtual clock of L. Zhang, SIGCOMM 1990). Taken in that order, callers with much work get equal
// shares of the workers, whoever sends more or longer sequences; and whoever asks for less than a
// share does not wait for the others' backlog. The time goes by the turns that are computed (as in
// start-time fair queuing, P. Goyal et al., SIGCOMM 1996), so that it does not matter whether the
// workers are as fast as was thought.
class FairTurns {
 public:
  // The turn of the caller's next sequence.
  TimePoint Next(const std::string& caller, TimePoint now) const;

  // A sequence of this turn is computed now.
  void Begin(TimePoint turn);
  // No sequence waits any more.
  void AllBegun();

  // The caller's sequences up to now are computed by this time.
  void Reserve(const std::string& caller, TimePoint until, TimePoint now);

  // Sequences of the caller that would take this time are not computed after all.
  void GiveBack(const std::string& caller, std::chrono::nanoseconds time);

 private:
  std::optional<TimePoint> begun_;  // the turn of those that are computed, while others wait
  std::map<std::string, TimePoint> until_;
  size_t forget_at_ = 1024;  // callers, of whom those without a backlog are then forgotten
};

}  // namespace linserve
