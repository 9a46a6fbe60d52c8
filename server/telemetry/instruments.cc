#include "telemetry/instruments.h"

#include <cmath>
#include <utility>

namespace linserve {
namespace {

// Rounds to three significant digits: bounds end up as labels, which people read and queries
// repeat.
double Rounded(double value) {
  const double scale = std::pow(10, 2 - std::floor(std::log10(value)));
  return std::round(value * scale) / scale;
}

}  // namespace

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

std::vector<double> TimeBuckets() {
  constexpr double kLast = 60;
  std::vector<double> bounds;
  for (double bound = 1e-4; bound < kLast; bound *= 1.6) bounds.push_back(Rounded(bound));
  bounds.push_back(kLast);
  return bounds;
}

std::vector<double> GeometricBuckets(double first, double factor, double last) {
  std::vector<double> bounds;
  for (double bound = first; bound <= last; bound *= factor) bounds.push_back(bound);
  return bounds;
}

}  // namespace linserve
