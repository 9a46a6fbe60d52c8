#include "rpc/server_stream_call.h"

#include <utility>

#include "rpc/call_context.h"
#include "rpc/convert.h"

namespace linserve {

ServerStreamCall* ServerStreamCall::Start(const std::shared_ptr<ServerStreamCall>& call,
                                          grpc::ByteBuffer& request) {
  call->self_ = call;
  call->metrics_.Message(Direction::kReceived, request.Length());
  call->Handle(request);
  return call.get();
}

ServerStreamCall::ServerStreamCall(ServiceContext& service, grpc::CallbackServerContext* context,
                                   const std::string& rpc)
    : service_(service),
      context_(context),
      metrics_(service.metrics.ForRpc(rpc)),
      outbox_({[this](const grpc::ByteBuffer* message) { StartWrite(message); },
               [this](const grpc::Status& status) {
                 AddLoadReport(*context_, service_.load);
                 Finish(status);
               },
               [this](const grpc::ByteBuffer* message) {
                 AddLoadReport(*context_, service_.load);
                 StartWriteAndFinish(message, {}, grpc::Status::OK);
               }},
              metrics_) {}

void ServerStreamCall::Refuse(const absl::Status& fault) {
  AddRetryDelay(*context_, fault);
  outbox_.FinishWhenEmpty(ToGrpcStatus(fault));
}

void ServerStreamCall::OnWriteDone(bool ok) { outbox_.Written(ok); }

void ServerStreamCall::OnCancel() { outbox_.Cancel(); }

void ServerStreamCall::OnDone() {
  // The last reference may be this one, or that of a result that was on its way.
  const std::shared_ptr<ServerStreamCall> self = std::move(self_);
  outbox_.Closed();
}

}  // namespace linserve
