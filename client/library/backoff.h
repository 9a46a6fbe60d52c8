#pragma once

#include <chrono>
#include <cstdint>
#include <random>

namespace linserve {

struct BackoffOptions {
  std::chrono::milliseconds initial{100};
  std::chrono::milliseconds max{5000};
  double multiplier = 2;
};

// Chooses the pauses between the attempts of one call: they grow by `multiplier` up to `max`, and
// each is drawn from the upper half of its range, so that clients that failed together do not come
// back together.
class Backoff {
 public:
  Backoff(const BackoffOptions& options, uint64_t seed);

  std::chrono::nanoseconds Next();

 private:
  BackoffOptions options_;
  double range_ns_;
  std::mt19937_64 random_;
};

}  // namespace linserve
