#include "rpc/calls/server_stream_call.h"

#include <utility>

#include "core/threads/guarded.h"
#include "rpc/calls/call_context.h"
#include "rpc/calls/grpc_status.h"

namespace linserve {

ServerStreamCall* ServerStreamCall::Start(const std::shared_ptr<ServerStreamCall>& call,
                                          grpc::ByteBuffer& request) {
  call->self_ = call;
  const absl::Status handled = Guarded("the request", [&] {
    call->metrics_.Message(Direction::kReceived, request.Length());
    call->Handle(request);
  });
  if (!handled.ok()) call->outbox_.Abort(ToGrpcStatus(handled));
  return call.get();
}

ServerStreamCall::ServerStreamCall(ServiceContext& service, grpc::CallbackServerContext* context,
                                   const std::string& rpc)
    : service_(service),
      context_(context),
      metrics_(service.metrics.ForRpc(rpc)),
      outbox_({[this](const grpc::ByteBuffer* message) { StartWrite(message); },
               [this](grpc::Status status) {
                 AddRetryDelay(*context_, status);
                 AddLoadReport(*context_, service_.load);
                 Finish(std::move(status));
               },
               [this](const grpc::ByteBuffer* message) {
                 AddLoadReport(*context_, service_.load);
                 StartWriteAndFinish(message, {}, grpc::Status::OK);
               }},
              metrics_) {}

CallSide ServerStreamCall::Side() {
  return {.call = shared_from_this(),
          .metrics = metrics_,
          .abandoned = [this] { return outbox_.cancelled(); },
          .ended =
              [this](const absl::Status& status) { outbox_.FinishWhenEmpty(ToGrpcStatus(status)); },
          .broken = [this](const absl::Status& status) { outbox_.Abort(ToGrpcStatus(status)); }};
}

void ServerStreamCall::OnWriteDone(bool ok) { outbox_.Written(ok); }

void ServerStreamCall::OnCancel() { outbox_.Cancel(); }

void ServerStreamCall::OnDone() {
  // The last reference may be this one, or that of a result that was on its way.
  const std::shared_ptr<ServerStreamCall> self = std::move(self_);
  outbox_.Closed();
}

}  // namespace linserve
