#include "rpc/oip/infer_call.h"

#include <string>
#include <utility>

#include "core/threads/guarded.h"
#include "rpc/calls/call_context.h"
#include "rpc/calls/grpc_status.h"
#include "rpc/oip/inference_checks.h"
#include "rpc/oip/inference_request.h"

namespace linserve {

InferCall* InferCall::Start(ServiceContext& service, grpc::CallbackServerContext* context,
                            grpc::ByteBuffer& request, grpc::ByteBuffer* response) {
  auto call = std::make_shared<InferCall>(service, context, response);
  call->self_ = call;
  const absl::Status begun = Guarded("the request", [&] { call->Begin(request); });
  if (!begun.ok()) call->Answer(begun);
  return call.get();
}

void InferCall::Begin(grpc::ByteBuffer& bytes) {
  metrics_.Message(Direction::kReceived, bytes.Length());
  Received<inference::ModelInferRequest> request;
  auto [context, status] =
      Receive(service_, *context_, bytes, inference::ModelInferRequest::kIdFieldNumber, request);
  const std::string id = request.message.id();
  context.id = RequestIdOf(*context_, id);
  const auto self = shared_from_this();
  const auto state = std::make_shared<InferRequestState>(
      CallSide{.call = self,
               .metrics = metrics_,
               .abandoned = [this] { return cancelled_.load(); },
               .broken = [this](const absl::Status& fault) { Answer(fault); }},
      std::move(context), /*chunks=*/false, [this, self, id](absl::StatusOr<InferAnswer> answer) {
        Answer(Guarded("the answer", [&] { return Fill(std::move(answer), id); }));
      });
  if (!status.ok()) return state->Refuse(status);
  state->Submit(service_, std::move(request));
}

// Makes the response.
absl::Status InferCall::Fill(absl::StatusOr<InferAnswer> answer, const std::string& id) {
  if (!answer.ok()) return WithRequestId(answer.status(), id);
  *response_ = answer->Chunk(0).Take();
  sending_ = answer->sending;
  metrics_.Message(Direction::kSent, response_->Length());
  return absl::OkStatus();
}

void InferCall::Answer(const absl::Status& status) {
  if (answered_.exchange(true)) return;
  AddLoadReport(*context_, service_.load);
  grpc::Status end = ToGrpcStatus(status);
  AddRetryDelay(*context_, end);
  Finish(std::move(end));
}

void InferCall::OnDone() {
  sending_.reset();  // which holds the request, and that this call
  const std::shared_ptr<InferCall> self = std::move(self_);  // perhaps the last reference
}

}  // namespace linserve
