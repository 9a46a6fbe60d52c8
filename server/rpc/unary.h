#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>

#include "absl/status/status.h"
#include "rpc/call_context.h"
#include "rpc/convert.h"
#include "telemetry/metrics.h"

namespace linserve {

// A request that is to be given up: gRPC holds it to the end of the call, and does nothing with it.
inline grpc::ByteBuffer& Taken(const grpc::ByteBuffer* request) {
  return *const_cast<grpc::ByteBuffer*>(request);
}

// A unary call that is answered at once, by `fill`, which returns a status. For anybody.
template <typename Fill>
grpc::ServerUnaryReactor* AnswerAtOnce(grpc::CallbackServerContext* context, RpcMetrics& metrics,
                                       const Fill& fill) {
  const auto start = std::chrono::steady_clock::now();
  metrics.Started();
  const absl::Status status = fill();
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  metrics.Finished(static_cast<int>(status.code()), std::chrono::steady_clock::now() - start);
  reactor->Finish(ToGrpcStatus(status));
  return reactor;
}

// The same for callers who may call, of whom `fill` is told.
template <typename Fill>
grpc::ServerUnaryReactor* AnswerCaller(grpc::CallbackServerContext* context, Access& access,
                                       RpcMetrics& metrics, const Fill& fill) {
  return AnswerAtOnce(context, metrics, [&]() -> absl::Status {
    const auto caller = CallerOf(*context, access);
    return caller.ok() ? fill(**caller) : caller.status();
  });
}

// A unary call that is answered when `begin` has called what it is given, with a status, once, from
// any thread.
template <typename Begin>
grpc::ServerUnaryReactor* AnswerLater(grpc::CallbackServerContext* context, RpcMetrics& metrics,
                                      const Begin& begin) {
  const auto start = std::chrono::steady_clock::now();
  metrics.Started();
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  begin([reactor, start, &metrics](const absl::Status& status) {
    metrics.Finished(static_cast<int>(status.code()), std::chrono::steady_clock::now() - start);
    reactor->Finish(ToGrpcStatus(status));
  });
  return reactor;
}

}  // namespace linserve
