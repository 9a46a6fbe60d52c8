#include "rpc/embedding/generate_server_call.h"

#include <memory>
#include <utility>

#include "rpc/calls/call_context.h"
#include "rpc/calls/received.h"
#include "rpc/embedding/generate_request.h"

namespace linserve {

void GenerateServerCall::Handle(grpc::ByteBuffer& bytes) {
  Received<v1::GenerateRequest> request;
  auto [context, status] =
      Receive(service_, *context_, bytes, v1::GenerateRequest::kRequestIdFieldNumber, request);
  context.id = RequestIdOf(*context_, request.message.request_id());
  const auto state = std::make_shared<GenerateRequestState>(Side(), outbox_, std::move(context));
  if (!status.ok()) return state->Refuse(status);
  state->Submit(service_, std::move(request));
}

}  // namespace linserve
