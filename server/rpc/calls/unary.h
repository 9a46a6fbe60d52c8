#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "core/threads/guarded.h"
#include "rpc/calls/call_context.h"
#include "rpc/calls/grpc_status.h"
#include "rpc/calls/received.h"
#include "rpc/messages/wire.h"
#include "telemetry/metrics.h"

namespace linserve {

// Ends a unary call, and counts it.
class UnaryEnd {
 public:
  UnaryEnd(grpc::ServerUnaryReactor& reactor, RpcMetrics& metrics)
      : reactor_(reactor), metrics_(metrics) {
    metrics_.Started();
  }

  // Only the first call does anything.
  void Finish(const absl::Status& status) {
    if (finished_.exchange(true)) return;
    RunGuarded("the count of a call", [&] {
      metrics_.Finished(static_cast<int>(status.code()), std::chrono::steady_clock::now() - start_);
    });
    reactor_.Finish(ToGrpcStatus(status));
  }

 private:
  grpc::ServerUnaryReactor& reactor_;
  RpcMetrics& metrics_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::atomic<bool> finished_ = false;
};

// Answers a unary call later: `begin` gets a function that it calls with the status, from any
// thread. What it throws is the status, too.
template <typename Begin>
grpc::ServerUnaryReactor* AnswerLater(grpc::CallbackServerContext* context, Metrics& metrics,
                                      const std::string& rpc, const Begin& begin) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  std::shared_ptr<UnaryEnd> end;
  const absl::Status begun = Guarded("the call", [&] {
    end = std::make_shared<UnaryEnd>(*reactor, metrics.ForRpc(rpc));
    begin([end](const absl::Status& status) { end->Finish(status); });
  });
  if (!begun.ok() && end != nullptr) end->Finish(begun);
  if (end == nullptr) reactor->Finish(ToGrpcStatus(begun));
  return reactor;
}

// Holds a question and its answer as they go over the wire.
struct RawQuestion {
  const grpc::ByteBuffer* question;
  grpc::ByteBuffer* answer;
};

// Parses a question, and has `fill` answer it.
template <typename Question, typename Answer, typename Fill>
absl::Status AnswerTo(const RawQuestion& raw, const Fill& fill) {
  Question question;
  Answer answer;
  absl::Status status = ParseQuestion(Taken(raw.question), question);
  if (status.ok()) status = fill(question, answer);
  if (!status.ok()) return status;
  WireMessage wire;
  wire.Add(answer);
  *raw.answer = std::move(wire).Take();
  return status;
}

// Answers a unary call of anybody at once, by `fill`, which returns a status.
template <typename Question, typename Answer, typename Fill>
grpc::ServerUnaryReactor* AnswerAnybody(grpc::CallbackServerContext* context, Metrics& metrics,
                                        const std::string& rpc, const RawQuestion& raw,
                                        const Fill& fill) {
  return AnswerLater(context, metrics, rpc,
                     [&](const auto& done) { done(AnswerTo<Question, Answer>(raw, fill)); });
}

// Answers a unary call at once, for callers who may call: `fill` is told who calls, too.
template <typename Question, typename Answer, typename Fill>
grpc::ServerUnaryReactor* AnswerCaller(grpc::CallbackServerContext* context,
                                       ServiceContext& service, const std::string& rpc,
                                       const RawQuestion& raw, const Fill& fill) {
  return AnswerLater(context, service.metrics, rpc, [&](const auto& done) {
    const auto caller = CallerOf(*context, service);
    if (!caller.ok()) return done(caller.status());
    done(AnswerTo<Question, Answer>(raw, [&](const Question& question, Answer& answer) {
      return fill(**caller, question, answer);
    }));
  });
}

}  // namespace linserve
