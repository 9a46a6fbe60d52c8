#pragma once

#include <memory>

#include "telemetry/trace/resource.h"
#include "telemetry/trace/span_queue.h"
#include "telemetry/trace/trace.h"

namespace linserve {

// Returns what sends spans to a collector by OpenTelemetry's protocol (OTLP) over gRPC, as those of
// the process that `resource` describes. Authorities are those that gRPC trusts: the system's, or
// those of the file that GRPC_DEFAULT_SSL_ROOTS_FILE_PATH names.
std::unique_ptr<SpanSender> MakeOtlpSender(const CollectorAddress& address, Resource resource);

}  // namespace linserve
