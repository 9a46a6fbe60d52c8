#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "access/access.h"
#include "batching/clock.h"
#include "rpc/load_reporter.h"

namespace linserve {

// The caller's deadline on the steady clock; TimePoint::max() if there is none.
TimePoint DeadlineOf(const grpc::ServerContextBase& context);

// In bytes: an id stands in every answer and in log lines.
inline constexpr size_t kLongestRequestId = 128;

// What the caller sent as `x-request-id`, else the id `given` in the request, else a new one.
std::string RequestIdOf(const grpc::ServerContextBase& context, const std::string& given);

// `given`, shortened, or a new one if it is empty.
std::string RequestIdOr(const std::string& given);

// The trace that a W3C `traceparent` header names; "" if it is none.
std::string TraceIdOf(std::string_view traceparent);
std::string TraceIdOf(const grpc::ServerContextBase& context);

// Who sends a request, and until when.
struct RequestContext {
  std::string id;
  TimePoint deadline = TimePoint::max();
  std::shared_ptr<const Caller> caller;
  std::string trace_id{};  // of the caller's trace, if it has one
  TimePoint begin = std::chrono::steady_clock::now();
};

// What an answer holds until it is sent, for the trace to show how long that took.
std::shared_ptr<void> TraceSending(const RequestContext& context);

// Logs how a request ended, now, and traces it.
void RequestEnded(const RequestContext& context, const std::string& rpc, const std::string& model,
                  size_t sequences, const absl::Status& status);

// Who calls; UNAUTHENTICATED if nobody who may.
absl::StatusOr<std::shared_ptr<const Caller>> CallerOf(const grpc::ServerContextBase& context,
                                                       Access& access);

// Tells callers that balance by it how loaded the server is.
void AddLoadReport(grpc::ServerContextBase& context, LoadReporter& load);

// Tells gRPC's own retry policy when to come back, if the status says when.
void AddRetryDelay(grpc::ServerContextBase& context, const absl::Status& status);

}  // namespace linserve
