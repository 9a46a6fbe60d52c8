#include "rpc/infer_call.h"

#include <string>
#include <utility>

#include "rpc/admission.h"
#include "rpc/call_context.h"
#include "rpc/convert.h"
#include "rpc/inference_checks.h"
#include "rpc/inference_request.h"

namespace linserve {

InferCall* InferCall::Start(ServiceContext& service, grpc::CallbackServerContext* context,
                            grpc::ByteBuffer& request, grpc::ByteBuffer* response) {
  auto call = std::make_shared<InferCall>(service, context, response);
  call->self_ = call;
  call->Begin(request);
  return call.get();
}

void InferCall::Begin(grpc::ByteBuffer& bytes) {
  const TimePoint begin = std::chrono::steady_clock::now();
  metrics_.Message(Direction::kReceived, bytes.Length());
  const auto caller = CallerOf(*context_, *service_.access);
  absl::Status status = caller.status();
  if (status.ok()) {
    status = AdmitCaller(service_, **caller, static_cast<int64_t>(bytes.Length()));
  }
  Received<inference::ModelInferRequest> request;
  if (status.ok()) status = Parse(bytes, request, LeastLargeField(service_));
  const std::string id = request.message.id();
  const auto self = shared_from_this();
  const auto done = [self, id](const absl::StatusOr<InferAnswer>& answer) {
    if (answer.ok()) {
      *self->response_ = answer->Part(0).Take();
      self->sending_ = answer->sending;
    }
    self->Answer(answer.status(), id);
  };
  const auto state = std::make_shared<InferRequestState>(
      InferRequestState::CallSide{metrics_, false, done,
                                  [self] { return self->cancelled_.load(); }},
      RequestContext{RequestIdOf(*context_, id.substr(0, kLongestRequestId)), DeadlineOf(*context_),
                     caller.value_or(nullptr), TraceIdOf(*context_), begin});
  if (!status.ok()) return state->Refuse(status);
  state->Submit(service_, std::move(request));
}

void InferCall::Answer(const absl::Status& status, const std::string& id) {
  metrics_.Message(Direction::kSent, response_->Length());
  AddLoadReport(*context_, service_.load);
  AddRetryDelay(*context_, status);
  Finish(ToGrpcStatus(WithRequestId(status, id)));
}

void InferCall::OnDone() {
  const std::shared_ptr<InferCall> self = std::move(self_);  // the last reference, perhaps
}

}  // namespace linserve
