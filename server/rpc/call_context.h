#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <string>

#include "batching/clock.h"
#include "engine/engine.h"
#include "rpc/load_reporter.h"

namespace linserve {

// The caller's deadline on the steady clock; TimePoint::max() if there is none.
TimePoint DeadlineOf(const grpc::ServerContextBase& context);

// In bytes: an id stands in every answer and in log lines.
inline constexpr size_t kLongestRequestId = 128;

// What the caller sent as `x-request-id`, else the id `given` in the request, else a new one.
std::string RequestIdOf(const grpc::ServerContextBase& context, const std::string& given);

// How long a caller that this engine has refused should wait before it tries again.
std::chrono::milliseconds RetryDelayOf(const Engine& engine);

// Tells callers that balance by it how loaded the server is.
void AddLoadReport(grpc::ServerContextBase& context, LoadReporter& load);

// Tells gRPC's own retry policy when to come back.
void AddRetryDelay(grpc::ServerContextBase& context, std::chrono::milliseconds delay);

}  // namespace linserve
