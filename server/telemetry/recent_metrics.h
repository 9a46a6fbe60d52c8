#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/threads/mutex.h"

namespace linserve {

// Keeps what the status page draws of the last hour: of some metrics a sample every ten seconds, so
// that a page that is opened then shows what was before. Its memory is bounded: it takes eight
// bytes a sample and series, of kMostSeries at most. Thread-safe.
class RecentMetrics {
 public:
  using Time = std::chrono::system_clock::time_point;

  static constexpr std::chrono::seconds kStep{10};
  static constexpr size_t kSamples = 360;
  static constexpr size_t kMostSeries = 2048;

  // Takes a sample of metrics in the Prometheus text format. Series for which there is no room are
  // left out.
  void Add(Time time, std::string_view metrics);

  // Returns the samples as {"times": [...], "series": {"linserve_open_streams{rpc=\"Embed\"}":
  // [...]}}, the oldest first. Times are seconds since the Unix epoch. A series that never changed
  // is one number in place of the list, and null stands where it was not there.
  std::string ToJson() const;
  // Returns one sample in the same form.
  static std::string ToJson(Time time, std::string_view metrics);

 private:
  struct Series {
    std::array<double, kSamples> values;  // NaN: the series was not there
    size_t last = 0;                      // the number of the sample that it was last in
  };

  mutable Mutex mutex_;
  size_t count_ ABSL_GUARDED_BY(mutex_) = 0;  // how many samples were ever taken
  std::array<double, kSamples> times_ ABSL_GUARDED_BY(mutex_){};
  std::map<std::string, Series, std::less<>> series_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace linserve
