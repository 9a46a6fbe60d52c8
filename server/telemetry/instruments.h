#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/metric_family.h>
#include <prometheus/registry.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/system/seconds.h"
#include "core/threads/mutex.h"
#include "telemetry/metrics.h"

// This header is for the .cc files of this folder: it declares a metric in one line.

namespace linserve {

// Makes metrics that share some labels. Asking twice for the same name and labels gives the same
// metric, so that families need no owner of their own.
class Instruments {
 public:
  Instruments(prometheus::Registry& registry, prometheus::Labels labels);

  // Returns those that share more labels.
  Instruments Of(const prometheus::Labels& more) const { return {registry_, With(more)}; }

  prometheus::Counter& Counter(const std::string& name, const std::string& help,
                               const prometheus::Labels& more = {}) const;
  prometheus::Gauge& Gauge(const std::string& name, const std::string& help,
                           const prometheus::Labels& more = {}) const;
  prometheus::Histogram& Histogram(const std::string& name, const std::string& help,
                                   const std::vector<double>& buckets,
                                   const prometheus::Labels& more = {}) const;

  // Makes one metric for each value of a label. All exist from the start: a rate over a series that
  // appears only with its first event misses that event.
  template <size_t N>
  std::array<prometheus::Counter*, N> Counters(const std::string& name, const std::string& help,
                                               const std::string& label,
                                               const std::array<std::string_view, N>& values) const;
  template <size_t N>
  std::array<prometheus::Gauge*, N> Gauges(const std::string& name, const std::string& help,
                                           const std::string& label,
                                           const std::array<std::string_view, N>& values) const;
  template <size_t N>
  std::array<prometheus::Histogram*, N> Histograms(
      const std::string& name, const std::string& help, const std::vector<double>& buckets,
      const std::string& label, const std::array<std::string_view, N>& values) const;

 private:
  prometheus::Labels With(const prometheus::Labels& more) const;

  prometheus::Registry& registry_;
  prometheus::Labels labels_;
};

// Is a histogram whose series come with its first observation: those of all calls that nobody makes
// would be nine tenths of what is scraped. A rate misses what comes before they are first scraped.
class LaterHistogram {
 public:
  LaterHistogram(Instruments make, std::string name, std::string help, std::vector<double> buckets,
                 prometheus::Labels more = {})
      : make_([make = std::move(make), name = std::move(name), help = std::move(help),
               buckets = std::move(buckets),
               more = std::move(more)] { return &make.Histogram(name, help, buckets, more); }) {}

  void Observe(double value) {
    prometheus::Histogram* histogram = histogram_.load(std::memory_order_acquire);
    if (histogram == nullptr) {
      histogram = make_();  // of two threads, both get the same one
      histogram_.store(histogram, std::memory_order_release);
    }
    histogram->Observe(value);
  }

 private:
  const std::function<prometheus::Histogram*()> make_;
  std::atomic<prometheus::Histogram*> histogram_ = nullptr;
};

// Keeps what is counted for each value of a label that is not known from the start. There may be so
// many values; those beyond are counted together as "other". Thread-safe.
template <typename Kept>
class ByLabel {
 public:
  using Make = std::function<std::unique_ptr<Kept>(const std::string& value)>;

  explicit ByLabel(Make make, size_t most = 1000) : make_(std::move(make)), most_(most) {}

  Kept& Of(const std::string& value) {
    const MutexLock lock(mutex_);
    if (Kept* const kept = Find(value)) return *kept;
    const std::string label = kept_.size() < most_ ? value : "other";
    if (Kept* const kept = Find(label)) return *kept;
    return *kept_.emplace(label, make_(label)).first->second;
  }

  void ForEach(const std::function<void(const std::string& value, Kept&)>& visit) {
    const MutexLock lock(mutex_);
    for (const auto& [value, kept] : kept_) visit(value, *kept);
  }

 private:
  Kept* Find(const std::string& value) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto found = kept_.find(value);
    return found == kept_.end() ? nullptr : found->second.get();
  }

  const Make make_;
  const size_t most_;
  Mutex mutex_;
  std::map<std::string, std::unique_ptr<Kept>> kept_ ABSL_GUARDED_BY(mutex_);
};

// Names the gRPC status codes by their numbers, 0 to 16.
inline constexpr std::array<std::string_view, 17> kCodes = {
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};

// Returns the counter of a code; that of UNKNOWN for any other number.
inline prometheus::Counter& OfCode(const std::array<prometheus::Counter*, kCodes.size()>& counters,
                                   int code) {
  constexpr size_t kUnknown = 2;
  const auto index = static_cast<size_t>(code);  // a negative code wraps to a large one
  return *counters[index < kCodes.size() ? index : kUnknown];
}

// Returns upper bounds from 100 µs to 60 s, each 1.4 to 1.6 times the one before, with the round
// ones that objectives are set at: 0.1, 0.25, 0.5, 1, 2.5, 5, 10.
std::vector<double> TimeBuckets();
// Returns first, first * factor, ... up to and including `last`.
std::vector<double> GeometricBuckets(double first, double factor, double last);

// Returns the metric of an enumerator, from an array in the order of its enumeration.
template <typename Metric, size_t N, typename Enum>
Metric& At(const std::array<Metric*, N>& metrics, Enum value) {
  return *metrics[static_cast<size_t>(value)];
}

std::shared_ptr<ModelMetrics> MakeModelMetrics(const std::string& name, int64_t version);
std::unique_ptr<RpcMetrics> MakeRpcMetrics(prometheus::Registry& registry, const std::string& rpc);

// Returns a counter or a gauge of one series, for what is read when it is asked for.
prometheus::MetricFamily Family(const std::string& name, const std::string& help,
                                prometheus::MetricType type, double value,
                                const prometheus::Labels& labels = {});

// Returns the figures of this process under the names that every Prometheus client uses, read now.
// What the system does not tell is left out.
std::vector<prometheus::MetricFamily> ProcessMetrics();

// Returns the figures of a model under the names that Triton has for them (its
// docs/user_guide/metrics.md), as its users' dashboards and autoscalers ask for them.
std::vector<prometheus::MetricFamily> TritonMetrics(const ModelFigures& figures, double queued,
                                                    const prometheus::Labels& labels);

template <size_t N>
std::array<prometheus::Counter*, N> Instruments::Counters(
    const std::string& name, const std::string& help, const std::string& label,
    const std::array<std::string_view, N>& values) const {
  std::array<prometheus::Counter*, N> made;
  for (size_t i = 0; i < N; ++i) made[i] = &Counter(name, help, {{label, std::string(values[i])}});
  return made;
}

template <size_t N>
std::array<prometheus::Gauge*, N> Instruments::Gauges(
    const std::string& name, const std::string& help, const std::string& label,
    const std::array<std::string_view, N>& values) const {
  std::array<prometheus::Gauge*, N> made;
  for (size_t i = 0; i < N; ++i) made[i] = &Gauge(name, help, {{label, std::string(values[i])}});
  return made;
}

template <size_t N>
std::array<prometheus::Histogram*, N> Instruments::Histograms(
    const std::string& name, const std::string& help, const std::vector<double>& buckets,
    const std::string& label, const std::array<std::string_view, N>& values) const {
  std::array<prometheus::Histogram*, N> made;
  for (size_t i = 0; i < N; ++i) {
    made[i] = &Histogram(name, help, buckets, {{label, std::string(values[i])}});
  }
  return made;
}

}  // namespace linserve
