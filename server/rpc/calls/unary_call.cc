#include "rpc/calls/unary_call.h"

#include <utility>

#include "core/threads/guarded.h"
#include "rpc/calls/call_context.h"
#include "rpc/calls/grpc_status.h"

namespace linserve {

UnaryCall* UnaryCall::Start(const std::shared_ptr<UnaryCall>& call, grpc::ByteBuffer& request) {
  call->self_ = call;
  const absl::Status begun = Guarded("the request", [&] {
    call->metrics_.Message(Direction::kReceived, request.Length());
    call->Handle(request);
  });
  if (!begun.ok()) call->End(begun);
  return call.get();
}

CallSide UnaryCall::Side() {
  return {.call = shared_from_this(),
          .metrics = metrics_,
          .abandoned = [this] { return cancelled_.load(); },
          .broken = [this](const absl::Status& fault) { End(fault); }};
}

void UnaryCall::Respond(grpc::ByteBuffer message, std::shared_ptr<void> sending) {
  response_->Swap(&message);
  sending_ = std::move(sending);
  metrics_.Message(Direction::kSent, response_->Length());
  End(absl::OkStatus());
}

void UnaryCall::End(const absl::Status& status) {
  if (ended_.exchange(true)) return;
  AddLoadReport(*context_, service_.load);
  grpc::Status end = ToGrpcStatus(status);
  AddRetryDelay(*context_, end);
  Finish(std::move(end));
}

void UnaryCall::OnDone() {
  sending_.reset();  // which holds the request, and that this call
  const std::shared_ptr<UnaryCall> self = std::move(self_);  // perhaps the last reference
}

}  // namespace linserve
