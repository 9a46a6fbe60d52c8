#include "client/load/report/load_timeline.h"

#include <algorithm>
#include <utility>

namespace linserve {
namespace {

void Merge(LoadTimeline::Interval& into, const LoadTimeline::Interval& other) {
  into.answered += other.answered;
  into.failed += other.failed;
  into.sequences += other.sequences;
  into.computed += other.computed;
  into.batch_sequences += other.batch_sequences;
  into.latency.Merge(other.latency);
}

}  // namespace

LoadTimeline::Interval& LoadTimeline::At(std::chrono::nanoseconds when) {
  when = std::max(when, std::chrono::nanoseconds(0));
  while (static_cast<size_t>(when / interval_) >= kMostIntervals) {
    interval_ *= 2;
    const size_t half = (intervals_.size() + 1) / 2;
    for (size_t i = 0; i < half; ++i) {
      if (i > 0) intervals_[i] = std::move(intervals_[2 * i]);
      if (2 * i + 1 < intervals_.size()) Merge(intervals_[i], intervals_[2 * i + 1]);
    }
    intervals_.resize(half);
  }
  const auto place = static_cast<size_t>(when / interval_);
  if (place >= intervals_.size()) intervals_.resize(place + 1);
  return intervals_[place];
}

}  // namespace linserve
