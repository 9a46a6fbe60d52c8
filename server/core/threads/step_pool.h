#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/threads/clock.h"

namespace linserve {

// Holds work that is done step by step.
struct StepJob {
  std::string caller;                     // who shares the threads fairly with the others
  int64_t work = 1;                       // how much there is to do, in the same unit for all jobs
  TimePoint deadline = TimePoint::max();  // from then on the next step comes before all others'
  // Does one step, of a few milliseconds, and returns how much work is left; 0: the job is done.
  // Steps of one job are never run at the same time. A job whose step throws is done, too.
  std::function<int64_t()> step;
};

namespace steps {
class Turns;
}

// Provides threads for work that must hold up neither a caller's thread nor the one that computes.
// Jobs take turns, one step each. The next turn is of the caller that has had the least time, and
// of its jobs the one that has had the least: whoever brings little work waits for about one step
// of others, however many they are and however much they bring. Thread-safe.
class StepPool {
 public:
  explicit StepPool(int64_t threads);
  // Finishes the jobs that were begun.
  ~StepPool();
  StepPool(const StepPool&) = delete;
  StepPool& operator=(const StepPool&) = delete;

  int64_t threads() const { return std::ssize(threads_); }

  void Run(StepJob job);

  // Estimates how long all threads take for so much work, from the speed of the steps up to now.
  std::chrono::nanoseconds TimeFor(int64_t work) const;

  // Estimates how long it takes until work is done that the caller brings now. Zero: no longer than
  // `enough`.
  std::chrono::nanoseconds TimeUntilDone(const std::string& caller, int64_t work,
                                         std::chrono::nanoseconds enough) const;

 private:
  void Work();

  const std::unique_ptr<steps::Turns> turns_;
  std::vector<std::thread> threads_;
};

}  // namespace linserve
