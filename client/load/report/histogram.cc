#include "client/load/report/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

namespace linserve {
namespace {

// A value of more than 8 bits keeps its upper 8, the first of which is always set: 128 buckets for
// each power of two.
constexpr int kKeptBits = 8;
constexpr size_t kHalf = size_t{1} << (kKeptBits - 1);
constexpr size_t kBuckets = (64 - kKeptBits + 2) * kHalf;

int DroppedBits(uint64_t value) {
  return std::max(0, static_cast<int>(std::bit_width(value)) - kKeptBits);
}

size_t BucketOf(uint64_t value) {
  const int dropped = DroppedBits(value);
  return static_cast<size_t>(dropped) * kHalf + static_cast<size_t>(value >> dropped);
}

uint64_t MiddleOf(size_t bucket) {
  const size_t dropped = bucket < 2 * kHalf ? 0 : bucket / kHalf - 1;
  const uint64_t lowest = static_cast<uint64_t>(bucket - dropped * kHalf) << dropped;
  return dropped == 0 ? lowest : lowest + (uint64_t{1} << (dropped - 1));
}

}  // namespace

Histogram::Histogram() : buckets_(kBuckets) {}

void Histogram::Record(uint64_t value) {
  ++buckets_[BucketOf(value)];
  ++count_;
  max_ = std::max(max_, value);
  sum_ += static_cast<double>(value);
}

void Histogram::Merge(const Histogram& other) {
  for (size_t i = 0; i < buckets_.size(); ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  max_ = std::max(max_, other.max_);
  sum_ += other.sum_;
}

double Histogram::mean() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }

double Histogram::deviation() const {
  if (count_ == 0) return 0;
  double squares = 0;
  for (size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    const double distance = static_cast<double>(MiddleOf(bucket)) - mean();
    squares += static_cast<double>(buckets_[bucket]) * distance * distance;
  }
  return std::sqrt(squares / static_cast<double>(count_));
}

uint64_t Histogram::CountUpTo(uint64_t value) const {
  const auto end = buckets_.begin() + static_cast<std::ptrdiff_t>(BucketOf(value) + 1);
  return std::accumulate(buckets_.begin(), end, uint64_t{0});
}

uint64_t Histogram::Quantile(double fraction) const {
  if (count_ == 0) return 0;
  const auto rank = static_cast<uint64_t>(std::ceil(fraction * static_cast<double>(count_)));
  uint64_t seen = 0;
  for (size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    seen += buckets_[bucket];
    if (seen >= std::max<uint64_t>(rank, 1)) return std::min(MiddleOf(bucket), max_);
  }
  return max_;
}

}  // namespace linserve
