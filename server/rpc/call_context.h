#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

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

// Who sends a request, and until when.
struct RequestContext {
  std::string id;
  TimePoint deadline = TimePoint::max();
  std::shared_ptr<const Caller> caller;
};

// Who calls; UNAUTHENTICATED if nobody who may.
absl::StatusOr<std::shared_ptr<const Caller>> CallerOf(const grpc::ServerContextBase& context,
                                                       Access& access);

// Tells callers that balance by it how loaded the server is.
void AddLoadReport(grpc::ServerContextBase& context, LoadReporter& load);

// Tells gRPC's own retry policy when to come back, if the status says when.
void AddRetryDelay(grpc::ServerContextBase& context, const absl::Status& status);

}  // namespace linserve
