#pragma once

#include <chrono>
#include <cstdint>
#include <random>

namespace linserve {

// Draws the times at which independent callers send `rate` requests a second in all: a Poisson
// process.
class PoissonArrivals {
 public:
  PoissonArrivals(double rate, uint64_t seed) : gap_s_(rate), random_(seed) {}

  // Returns the time of the next request, since the start. The sum of the gaps is kept in seconds
  // of double precision, so that no rounding of single gaps changes the rate.
  std::chrono::nanoseconds Next() {
    elapsed_s_ += gap_s_(random_);
    return std::chrono::nanoseconds(static_cast<int64_t>(elapsed_s_ * 1e9));
  }

 private:
  std::exponential_distribution<double> gap_s_;
  std::mt19937_64 random_;
  double elapsed_s_ = 0;
};

}  // namespace linserve
