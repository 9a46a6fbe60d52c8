#include "engine/speed_estimate.h"

#include <algorithm>

namespace linserve {

void SpeedEstimate::Observe(int64_t tokens, std::chrono::nanoseconds time) {
  const auto size = static_cast<double>(std::max<int64_t>(tokens, 1));
  const double measured = static_cast<double>(time.count()) / size;
  // Two workers may overwrite each other's update, since either is a fair estimate.
  // One like no other is forgotten once as many tokens were computed without it.
  const double largest = std::max(size, largest_.load(std::memory_order_relaxed) - size);
  largest_.store(largest, std::memory_order_relaxed);
  const double known = nanoseconds_per_token_.load(std::memory_order_relaxed);
  const double weight = known == 0.0 ? 1 : 0.2 * size / largest;
  nanoseconds_per_token_.store(known + weight * (measured - known), std::memory_order_relaxed);
}

std::chrono::nanoseconds SpeedEstimate::TimeFor(int64_t tokens) const {
  const double time =
      nanoseconds_per_token_.load(std::memory_order_relaxed) * static_cast<double>(tokens);
  return std::chrono::nanoseconds(static_cast<int64_t>(time));
}

}  // namespace linserve
