#include "rpc/infer_stream_call.h"

#include <utility>

#include "rpc/admission.h"
#include "rpc/call_context.h"
#include "rpc/convert.h"
#include "rpc/inference_checks.h"
#include "rpc/inference_request.h"

namespace linserve {
namespace {

using inference::ModelStreamInferResponse;

bool Says(const grpc::CallbackServerContext& context, const char* header) {
  const auto found = context.client_metadata().find(header);
  return found != context.client_metadata().end() && found->second == "true";
}

// The parts of an answer, or the error. Ends the request when it is destroyed.
class StreamedAnswer : public Answer {
 public:
  StreamedAnswer(absl::StatusOr<InferAnswer> answer, std::string id,
                 std::shared_ptr<void> keep_alive)
      : answer_(std::move(answer)), id_(std::move(id)), keep_alive_(std::move(keep_alive)) {}

  bool Next(grpc::ByteBuffer& message) override {
    const bool last = !answer_.ok() || part_ + 1 == answer_->parts.size();
    inference::ModelInferResponse head;
    (*head.mutable_parameters())["triton_final_response"].set_bool_param(last);
    WireMessage wire;
    if (answer_.ok()) {
      wire.AddMessage(ModelStreamInferResponse::kInferResponseFieldNumber,
                      answer_->Part(part_, std::move(head)));
      answer_->parts[part_++].clear();
    } else {
      ModelStreamInferResponse error;
      error.set_error_message(std::string(answer_.status().message()));
      head.set_id(id_);
      *error.mutable_infer_response() = std::move(head);
      wire.Add(error);
    }
    message = std::move(wire).Take();
    return last;
  }

 private:
  absl::StatusOr<InferAnswer> answer_;
  const std::string id_;
  const std::shared_ptr<void> keep_alive_;
  size_t part_ = 0;
};

}  // namespace

InferStreamCall::InferStreamCall(ServiceContext& service, grpc::CallbackServerContext* context)
    : StreamCall(service, context, "ModelStreamInfer"),
      ordered_(Says(*context, "linserve-ordered")),
      ends_with_error_(Says(*context, "triton_grpc_error")) {}

absl::Status InferStreamCall::Handle(grpc::ByteBuffer& bytes) {
  const TimePoint begin = std::chrono::steady_clock::now();
  const auto caller = CallerOf(*context_, *service_.access);
  if (!caller.ok()) return caller.status();
  Received<inference::ModelInferRequest> request;
  if (absl::Status parsed = Parse(bytes, request, LeastLargeField(service_)); !parsed.ok())
    return parsed;
  const auto self = shared_from_this();
  const std::string id = request.message.id();
  const int64_t place = requests_++;
  // What every answer keeps alive, and the request itself until it has one.
  const std::shared_ptr<void> in_flight(nullptr, [this, self](void*) { RequestFinished(); });
  const auto answer = [this, id, place, in_flight](absl::StatusOr<InferAnswer> result) {
    if (!result.ok()) result = WithRequestId(result.status(), id);
    if (!result.ok() && ends_with_error_) {
      return Send(place, {nullptr, ToGrpcStatus(result.status())});
    }
    Send(place, {std::make_unique<StreamedAnswer>(std::move(result), id, in_flight), {}});
  };
  const auto state = std::make_shared<InferRequestState>(
      InferRequestState::CallSide{metrics_, true, answer,
                                  [this] { return failed_ || outbox_.cancelled(); }},
      RequestContext{RequestIdOr(id), DeadlineOf(*context_), *caller, TraceIdOf(*context_), begin});
  absl::Status status = AdmitCaller(service_, **caller, request.bytes);
  if (status.ok()) {
    state->Submit(service_, std::move(request));
  } else {
    state->Refuse(status);
  }
  return absl::OkStatus();
}

void InferStreamCall::Send(int64_t place, Outcome outcome) {
  if (!ordered_) return Push(std::move(outcome));
  {
    MutexLock lock(order_mutex_);
    waiting_[place] = std::move(outcome);
    // A push may run gRPC's callbacks, and those send again.
    if (std::exchange(sending_, true)) return;
  }
  while (true) {
    Outcome next;
    {
      MutexLock lock(order_mutex_);
      const auto first = waiting_.begin();
      sending_ = first != waiting_.end() && first->first == next_;
      if (!sending_) return;
      next = std::move(first->second);
      waiting_.erase(first);
      ++next_;
    }
    Push(std::move(next));
  }
}

void InferStreamCall::Push(Outcome outcome) {
  if (outcome.answer) return outbox_.Push(std::move(outcome.answer));
  failed_ = true;
  outbox_.FinishWhenEmpty(outcome.end);
}

}  // namespace linserve
