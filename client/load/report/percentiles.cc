#include "client/load/report/percentiles.h"

#include <array>
#include <cmath>
#include <cstdio>

namespace linserve {

std::vector<Percentile> Percentiles(const Histogram& histogram) {
  constexpr int kSteps = 5;  // in each halving
  std::vector<Percentile> percentiles;
  const auto add = [&](double fraction) {
    const uint64_t value = histogram.Quantile(fraction);
    percentiles.push_back({fraction, value, histogram.CountUpTo(value)});
  };
  if (histogram.count() == 0) return percentiles;
  for (double left = 1; percentiles.empty() || percentiles.back().count < histogram.count();
       left /= 2) {
    for (int i = 0; i < kSteps; ++i) add(1 - left + left / 2 * i / kSteps);
  }
  while (percentiles.size() > 1 && percentiles[percentiles.size() - 2].count == histogram.count()) {
    percentiles.pop_back();
  }
  percentiles.back() = {1, histogram.max(), histogram.count()};
  return percentiles;
}

std::string PercentileTable(const Histogram& nanoseconds) {
  std::string text = "       Value     Percentile TotalCount 1/(1-Percentile)\n\n";
  std::array<char, 128> line{};
  for (const Percentile& percentile : Percentiles(nanoseconds)) {
    const double value = Milliseconds(static_cast<double>(percentile.value));
    const auto count = static_cast<unsigned long long>(percentile.count);
    if (percentile.fraction < 1) {
      std::snprintf(line.data(), line.size(), "%12.3f %2.12f %10llu %14.2f\n", value,
                    percentile.fraction, count, 1 / (1 - percentile.fraction));
    } else {
      std::snprintf(line.data(), line.size(), "%12.3f %2.12f %10llu\n", value, percentile.fraction,
                    count);
    }
    text += line.data();
  }
  std::snprintf(line.data(), line.size(), "#[Mean    = %12.3f, StdDeviation   = %12.3f]\n",
                Milliseconds(nanoseconds.mean()), Milliseconds(nanoseconds.deviation()));
  text += line.data();
  std::snprintf(line.data(), line.size(), "#[Max     = %12.3f, Total count    = %12llu]\n",
                Milliseconds(static_cast<double>(nanoseconds.max())),
                static_cast<unsigned long long>(nanoseconds.count()));
  return text + line.data();
}

}  // namespace linserve
