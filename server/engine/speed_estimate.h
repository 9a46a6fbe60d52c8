#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace linserve {

// Estimates the real tokens per second of one replica, averaged over the last batches with falling
// weight. A batch counts by its tokens over those of the largest one of late: a single row takes as
// long as many, and where the estimate matters, many rows wait. Thread-safe.
class SpeedEstimate {
 public:
  // Learns from a forward pass that took this time and was not cut short.
  void Observe(int64_t tokens, std::chrono::nanoseconds time);

  // Returns how long `tokens` take on one replica; zero before the first observation.
  std::chrono::nanoseconds TimeFor(int64_t tokens) const;

 private:
  std::atomic<double> nanoseconds_per_token_{0.0};
  std::atomic<double> largest_{1.0};  // tokens of the largest batch of late
};

}  // namespace linserve
