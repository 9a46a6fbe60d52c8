#include "client/library/backoff.h"

#include <algorithm>

namespace linserve {

Backoff::Backoff(const BackoffOptions& options, uint64_t seed)
    : options_(options),
      range_ns_(static_cast<double>(std::chrono::nanoseconds(options.initial).count())),
      random_(seed) {}

std::chrono::nanoseconds Backoff::Next() {
  const auto max_ns = static_cast<double>(std::chrono::nanoseconds(options_.max).count());
  const double range = std::min(range_ns_, max_ns);
  range_ns_ = std::min(range_ns_ * options_.multiplier, max_ns);
  const double pause = std::uniform_real_distribution<double>(range / 2, range)(random_);
  return std::chrono::nanoseconds(static_cast<int64_t>(pause));
}

}  // namespace linserve
