#pragma once

#include <prometheus/metric_family.h>

#include <string>
#include <vector>

#include "telemetry/exemplars.h"

namespace linserve {

// Writes metrics as OpenMetrics 1.0.0, which prometheus-cpp 1.0 has no serializer for.
std::string ToOpenMetrics(const std::vector<prometheus::MetricFamily>& families,
                          const Exemplars& exemplars);

}  // namespace linserve
