#include "rpc/embed_server_call.h"

#include <utility>

#include "rpc/admission.h"
#include "rpc/call_context.h"
#include "rpc/embed_request.h"
#include "rpc/received.h"

namespace linserve {

void EmbedServerCall::Handle(grpc::ByteBuffer& bytes) {
  const TimePoint begin = std::chrono::steady_clock::now();
  const auto caller = CallerOf(*context_, *service_.access);
  absl::Status status = caller.status();
  if (status.ok()) {
    status = AdmitCaller(service_, **caller, static_cast<int64_t>(bytes.Length()));
  }
  Received<v1::EmbedRequest> request;
  if (status.ok()) status = Parse(bytes, request, LeastLargeField(service_));
  const CallSide side{
      .call = shared_from_this(),
      .outbox = &outbox_,
      .metrics = &metrics_,
      .refuse = [this](const absl::Status& fault, const std::shared_ptr<void>&) { Refuse(fault); },
      .answered = nullptr,
      .finished = [this] { outbox_.FinishWhenEmpty(grpc::Status::OK); }};
  const auto state = std::make_shared<EmbedRequestState>(
      side,
      RequestContext{RequestIdOf(*context_, request.message.request_id()), DeadlineOf(*context_),
                     caller.value_or(nullptr), TraceIdOf(*context_), begin});
  outbox_.Expect(static_cast<size_t>(request.message.sequences_size()));
  if (!status.ok()) return state->Refuse(status);
  state->Submit(service_, std::move(request));
}

}  // namespace linserve
