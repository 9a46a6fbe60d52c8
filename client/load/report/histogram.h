#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace linserve {

// Counts values that span many orders of magnitude, in buckets whose width is at most 1/128 of
// their values: it is exact below 256, and a quantile is off by at most 0.4 % above. It takes 60
// kB, whatever is recorded. Not thread-safe.
class Histogram {
 public:
  static constexpr double kRelativeError = 1.0 / 256;

  Histogram();

  void Record(uint64_t value);
  void Merge(const Histogram& other);

  uint64_t count() const { return count_; }
  uint64_t max() const { return max_; }
  double mean() const;
  double deviation() const;  // how far values are from their mean; to within kRelativeError of them

  // Returns the smallest recorded value that at least `fraction` of all values do not exceed, to
  // within kRelativeError; 0 if nothing was recorded. REQUIRES: 0 <= fraction <= 1.
  uint64_t Quantile(double fraction) const;

  // Returns how many values are at most `value`, as far as the buckets tell.
  uint64_t CountUpTo(uint64_t value) const;

 private:
  std::vector<uint64_t> buckets_;
  uint64_t count_ = 0;
  uint64_t max_ = 0;
  double sum_ = 0;
};

}  // namespace linserve
