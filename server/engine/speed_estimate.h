#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace linserve {

// Estimates the real tokens per second of one replica, or of those together that share processors,
// averaged over the last batches with falling weight. A batch counts by its tokens over those of
// the largest one of late: a single row takes as long as many, and where the estimate matters, many
// rows wait. Thread-safe.
class SpeedEstimate {
 public:
  // Learns from a forward pass that took this time and was not cut short.
  void Observe(int64_t tokens, std::chrono::nanoseconds time);

  // Says that so many more, or fewer, compute now of those that share processors: what each takes
  // is as much longer.
  void AddSharers(int64_t change) { sharers_.fetch_add(change, std::memory_order_relaxed); }

  // Returns how long `tokens` take; zero before the first observation.
  std::chrono::nanoseconds TimeFor(int64_t tokens) const;

 private:
  std::atomic<int64_t> sharers_{0};
  std::atomic<double> nanoseconds_per_token_{0.0};
  std::atomic<double> largest_{1.0};  // tokens of the largest batch of late
};

}  // namespace linserve
