#include "telemetry/instruments.h"

#include <utility>

namespace linserve {

Instruments::Instruments(prometheus::Registry& registry, prometheus::Labels labels)
    : registry_(registry), labels_(std::move(labels)) {}

prometheus::Counter& Instruments::Counter(const std::string& name, const std::string& help,
                                          const prometheus::Labels& more) const {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry_).Add(With(more));
}

prometheus::Gauge& Instruments::Gauge(const std::string& name, const std::string& help,
                                      const prometheus::Labels& more) const {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry_).Add(With(more));
}

prometheus::Histogram& Instruments::Histogram(const std::string& name, const std::string& help,
                                              const std::vector<double>& buckets,
                                              const prometheus::Labels& more) const {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry_).Add(With(more),
                                                                                    buckets);
}

prometheus::Labels Instruments::With(const prometheus::Labels& more) const {
  prometheus::Labels all = labels_;
  all.insert(more.begin(), more.end());
  return all;
}

prometheus::MetricFamily Family(const std::string& name, const std::string& help,
                                prometheus::MetricType type, double value,
                                const prometheus::Labels& labels) {
  prometheus::ClientMetric metric;
  for (const auto& [label, of] : labels) metric.label.push_back({label, of});
  (type == prometheus::MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
  return {name, help, type, {metric}};
}

std::vector<double> TimeBuckets() {
  constexpr double kLast = 60;
  std::vector<double> bounds;
  // Decades are divided, not multiplied, so that each bound is the number nearest to its decimals.
  for (const double part : {1e5, 1e4, 1e3, 1e2, 1e1, 1.0}) {
    for (const double step : {10.0, 16.0, 25.0, 35.0, 50.0, 70.0}) {
      if (step / part < kLast) bounds.push_back(step / part);
    }
  }
  bounds.push_back(kLast);
  return bounds;
}

std::vector<double> GeometricBuckets(double first, double factor, double last) {
  std::vector<double> bounds;
  for (double bound = first; bound <= last; bound *= factor) bounds.push_back(bound);
  return bounds;
}

}  // namespace linserve
