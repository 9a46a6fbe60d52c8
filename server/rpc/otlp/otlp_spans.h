#pragma once

#include <vector>

#include "opentelemetry/proto/collector/trace/v1/trace_service.pb.h"
#include "telemetry/trace/ended_span.h"
#include "telemetry/trace/resource.h"

namespace linserve {

namespace otlp = opentelemetry::proto::collector::trace::v1;

// Writes spans as OpenTelemetry's protocol and semantic conventions have them. What these have no
// name for is an attribute "linserve.KEY".
otlp::ExportTraceServiceRequest ToOtlp(const std::vector<EndedSpan>& spans,
                                       const Resource& resource);

}  // namespace linserve
