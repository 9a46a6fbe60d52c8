#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace linserve {

// Real tokens per second of one replica, averaged over the last batches with falling weight.
// Thread-safe.
class SpeedEstimate {
 public:
  void Observe(int64_t tokens, std::chrono::nanoseconds time);

  // How long `tokens` take on one replica; zero before the first observation.
  std::chrono::nanoseconds TimeFor(int64_t tokens) const;

 private:
  std::atomic<double> nanoseconds_per_token_{0.0};
};

}  // namespace linserve
