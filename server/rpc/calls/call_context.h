#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <string>

#include "access/access.h"
#include "core/threads/clock.h"
#include "serving/load_reporter.h"
#include "serving/request_context.h"
#include "serving/service_context.h"

namespace linserve {

// Returns the caller's deadline on the steady clock; TimePoint::max() if there is none.
TimePoint DeadlineOf(const grpc::ServerContextBase& context);

// Returns what the caller sent as `x-request-id`, else the id `given` in the request, else a new
// one.
std::string RequestIdOf(const grpc::ServerContextBase& context, const std::string& given);

// Holds what is known of a request as it arrives, before anything of it is decoded.
struct Arrival {
  RequestContext context{};  // all but its id; its caller is null if nobody is known who may call
  absl::Status admitted{};   // whether the caller may send it
};

// Finds out who calls, without asking whether the caller may send anything.
Arrival Identify(const ServiceContext& service, const grpc::ServerContextBase& context);
// Calls Identify(), and checks whether the caller may send a request of so many bytes.
Arrival Admit(const ServiceContext& service, const grpc::ServerContextBase& context,
              int64_t request_bytes);

// Returns the trace that the caller's `traceparent` names.
TraceContext TraceOf(const grpc::ServerContextBase& context);

// Returns who calls; UNAUTHENTICATED if it is nobody who may, RESOURCE_EXHAUSTED if the call brings
// too much metadata.
absl::StatusOr<std::shared_ptr<const Caller>> CallerOf(const grpc::ServerContextBase& context,
                                                       const ServiceContext& service);

// Names the header or trailer of a load report, in which HTTP has it in base64, as gRPC does on the
// wire.
inline constexpr const char* kLoadReportKey = "endpoint-load-metrics-bin";

// Returns the load as a serialized OrcaLoadReport.
std::string LoadReport(LoadReporter& load);

// Tells callers that balance by it how loaded the server is. Like the next function, it tells them
// nothing where there is no memory for it.
void AddLoadReport(grpc::ServerContextBase& context, LoadReporter& load);

// Tells gRPC's own retry policy when to come back, if the status says when.
void AddRetryDelay(grpc::ServerContextBase& context, const grpc::Status& status);

}  // namespace linserve
