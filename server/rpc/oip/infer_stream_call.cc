#include "rpc/oip/infer_stream_call.h"

#include <utility>

#include "rpc/calls/call_context.h"
#include "rpc/calls/grpc_status.h"
#include "rpc/calls/received.h"
#include "rpc/messages/peek.h"
#include "rpc/oip/inference_checks.h"
#include "rpc/oip/inference_request.h"

namespace linserve {
namespace {

using inference::ModelStreamInferResponse;

bool Says(const grpc::CallbackServerContext& context, const char* header) {
  const auto found = context.client_metadata().find(header);
  return found != context.client_metadata().end() && found->second == "true";
}

// Sends the chunks of an answer, or the error. Its destructor ends the request.
class StreamedAnswer : public Answer {
 public:
  StreamedAnswer(absl::StatusOr<InferAnswer> answer, std::string id,
                 std::shared_ptr<void> keep_alive)
      : answer_(std::move(answer)), id_(std::move(id)), keep_alive_(std::move(keep_alive)) {}

  bool Next(WireMessage& message) override {
    const bool last = !answer_.ok() || sent_ + 1 == chunks_;
    inference::ModelInferResponse head;
    (*head.mutable_parameters())["triton_final_response"].set_bool_param(last);
    if (answer_.ok()) {
      message.AddMessage(ModelStreamInferResponse::kInferResponseFieldNumber,
                         answer_->Chunk(sent_++, std::move(head)));
    } else {
      ModelStreamInferResponse error;
      error.set_error_message(MessageOf(answer_.status()));
      head.set_id(id_);
      *error.mutable_infer_response() = std::move(head);
      message.Add(error);
    }
    return last;
  }

  void Failed(const absl::Status& fault) override {
    if (answer_.ok()) answer_->sending->Failed(fault);
  }

 private:
  absl::StatusOr<InferAnswer> answer_;
  const std::string id_;
  const std::shared_ptr<void> keep_alive_;
  const size_t chunks_ = answer_.ok() ? answer_->Chunks() : 1;
  size_t sent_ = 0;
};

}  // namespace

InferStreamCall::InferStreamCall(ServiceContext& service, grpc::CallbackServerContext* context)
    : StreamCall(service, context, "ModelStreamInfer"),
      ends_with_error_(Says(*context, "triton_grpc_error")),
      order_(outbox_, Says(*context, "linserve-ordered")) {}

absl::Status InferStreamCall::Handle(grpc::ByteBuffer& bytes) {
  constexpr int kId = inference::ModelInferRequest::kIdFieldNumber;
  Received<inference::ModelInferRequest> request;
  auto [context, admitted] = Arrive(service_, *context_, bytes, request);
  if (context.caller == nullptr) return admitted;
  if (!admitted.ok()) {
    KeepIdOnly(bytes, kId, request.message);
  } else if (absl::Status parsed = Parse(bytes, request.message); !parsed.ok()) {
    return parsed;
  }
  const auto self = shared_from_this();
  const std::string id = request.message.id();
  const std::string name = RequestIdOr(id);
  context.id = name;
  const int64_t number = requests_++;
  // Every answer keeps this alive, and the request itself does until it has one.
  const std::shared_ptr<void> in_flight(nullptr, [this, self](void*) { RequestFinished(); });
  const auto state = std::make_shared<InferRequestState>(
      // The request is counted and logged before its stream may end.
      CallSide{.call = in_flight,
               .metrics = metrics_,
               .abandoned = [this] { return order_.ended() || outbox_.cancelled(); },
               .broken = [this](const absl::Status& fault) { Abort(fault); }},
      std::move(context), /*chunks=*/true,
      [this, id, name, number, in_flight](absl::StatusOr<InferAnswer> result) {
        if (!result.ok()) result = WithRequestId(result.status(), name);
        Guard([&] { Answer(number, id, std::move(result), in_flight); });
      });
  if (admitted.ok()) {
    state->Submit(service_, std::move(request));
  } else {
    state->Refuse(admitted);
  }
  return absl::OkStatus();
}

void InferStreamCall::Answer(int64_t number, const std::string& id,
                             absl::StatusOr<InferAnswer> result,
                             const std::shared_ptr<void>& in_flight) {
  if (!result.ok() && ends_with_error_) {
    return order_.Send(number, {nullptr, ToGrpcStatus(result.status())});
  }
  order_.Send(number, {std::make_unique<StreamedAnswer>(std::move(result), id, in_flight), {}});
}

}  // namespace linserve
