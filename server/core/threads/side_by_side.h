#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

namespace linserve {

// Hands the numbers of a loop out to the threads that compute it side by side.
class LoopTurns {
 public:
  // With `shared` it has been opened to helpers.
  LoopTurns(int64_t count, bool shared) : shared_(shared), left_(count), end_(count) {}

  // Takes a number: the caller of SideBySide() the first one that is left, helpers the last one, so
  // that in the next loop each finds in its cache what it has computed in this one. Returns false
  // if there is none left, or if a helper's processor is wanted by another thread that computes.
  bool Next(int64_t& number);

  // Says whether there is one left.
  bool left() const { return left_.load(std::memory_order_relaxed) > 0; }

  // Leaves out the numbers that are not taken yet.
  void Stop();

 private:
  const bool shared_;
  std::atomic<int64_t> left_;
  std::atomic<int64_t> first_ = 0;  // of those that are left
  std::atomic<int64_t> end_;        // of those
  std::atomic<bool> stopped_ = false;
};

// Calls `run` on the calling thread, and on helpers of the process whose processors nobody else
// computes on: at most `threads` threads in all. Each takes numbers of [0, count) until there are
// none left. Returns when all are done. Throws one of what `run` throws. Helpers are there for all
// loops of the process, and sleep when there is nothing to do. Thread-safe.
void SideBySide(int64_t count, int64_t threads, const std::function<void(LoopTurns& turns)>& run);

// Says whether the calling thread is in such a loop of several threads.
bool IsSideBySide();

// Says that the calling thread computes as long as this lives: it takes the place of a helper. The
// scopes of one thread count once.
class ComputingScope {
 public:
  ComputingScope();
  ~ComputingScope();
  ComputingScope(const ComputingScope&) = delete;
  ComputingScope& operator=(const ComputingScope&) = delete;
};

// Returns with how many threads each of those that compute now can do so, the calling one included,
// at most `most`: their share of the processors. At least 1.
int64_t ShareOfProcessors(int64_t most);

}  // namespace linserve
