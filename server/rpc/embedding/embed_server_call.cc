#include "rpc/embedding/embed_server_call.h"

#include <memory>
#include <utility>

#include "rpc/calls/call_context.h"
#include "rpc/calls/received.h"
#include "rpc/embedding/embed_request.h"

namespace linserve {

void EmbedServerCall::Handle(grpc::ByteBuffer& bytes) {
  Received<v1::EmbedRequest> request;
  auto [context, status] =
      Receive(service_, *context_, bytes, v1::EmbedRequest::kRequestIdFieldNumber, request);
  context.id = RequestIdOf(*context_, request.message.request_id());
  const auto state = std::make_shared<EmbedRequestState>(
      Side(), EmbedRequestState::Output{.outbox = outbox_}, std::move(context));
  outbox_.Expect(static_cast<size_t>(request.message.sequences_size()));
  if (!status.ok()) return state->Refuse(status);
  state->Submit(service_, std::move(request));
}

}  // namespace linserve
