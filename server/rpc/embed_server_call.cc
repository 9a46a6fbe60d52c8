#include "rpc/embed_server_call.h"

#include <utility>

#include "rpc/admission.h"
#include "rpc/call_context.h"
#include "rpc/convert.h"
#include "rpc/wire.h"

namespace linserve {

EmbedServerCall* EmbedServerCall::Start(ServiceContext& service,
                                        grpc::CallbackServerContext* context,
                                        grpc::ByteBuffer& request) {
  auto call = std::make_shared<EmbedServerCall>(service, context);
  call->self_ = call;
  call->Begin(request);
  return call.get();
}

EmbedServerCall::EmbedServerCall(ServiceContext& service, grpc::CallbackServerContext* context)
    : service_(service),
      context_(context),
      metrics_(service.metrics.ForRpc("Embed")),
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

void EmbedServerCall::Begin(grpc::ByteBuffer& bytes) {
  metrics_.Message(Direction::kReceived, bytes.Length());
  const auto caller = CallerOf(*context_, *service_.access);
  absl::Status status = caller.status();
  if (status.ok()) {
    status = AdmitCaller(service_, **caller, static_cast<int64_t>(bytes.Length()));
  }
  v1::EmbedRequest request;
  if (status.ok()) status = Parse(bytes, request);
  const CallSide side{.call = shared_from_this(),
                      .outbox = &outbox_,
                      .metrics = &metrics_,
                      .refuse =
                          [this](const absl::Status& fault, const std::shared_ptr<void>&) {
                            AddRetryDelay(*context_, fault);
                            outbox_.FinishWhenEmpty(ToGrpcStatus(fault));
                          },
                      .answered = nullptr,
                      .finished = [this] { outbox_.FinishWhenEmpty(grpc::Status::OK); }};
  const auto state = std::make_shared<EmbedRequestState>(
      side, RequestContext{RequestIdOf(*context_, request.request_id()), DeadlineOf(*context_),
                           caller.value_or(nullptr), TraceIdOf(*context_)});
  outbox_.Expect(static_cast<size_t>(request.sequences_size()));
  if (!status.ok()) return state->Refuse(status);
  state->Submit(service_, std::move(request));
}

void EmbedServerCall::OnWriteDone(bool ok) { outbox_.Written(ok); }

void EmbedServerCall::OnCancel() { outbox_.Cancel(); }

void EmbedServerCall::OnDone() {
  // The last reference may be this one, or that of a result that was on its way.
  const std::shared_ptr<EmbedServerCall> self = std::move(self_);
  outbox_.Closed();
}

}  // namespace linserve
