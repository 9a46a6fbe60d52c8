#include "rpc/oip/infer_call.h"

#include <memory>
#include <string>
#include <utility>

#include "core/threads/guarded.h"
#include "rpc/calls/call_context.h"
#include "rpc/calls/received.h"
#include "rpc/oip/inference_checks.h"
#include "rpc/oip/inference_request.h"

namespace linserve {

void InferCall::Handle(grpc::ByteBuffer& bytes) {
  Received<inference::ModelInferRequest> request;
  auto [context, status] =
      Receive(service_, *context_, bytes, inference::ModelInferRequest::kIdFieldNumber, request);
  const std::string id = RequestIdOf(*context_, request.message.id());
  context.id = id;
  const auto state = std::make_shared<InferRequestState>(
      Side(), std::move(context), /*chunks=*/false,
      [this, self = shared_from_this(), id](const absl::StatusOr<InferAnswer>& answer) {
        const absl::Status fault = Guarded("the answer", [&] {
          if (!answer.ok()) return WithRequestId(answer.status(), id);
          Respond(answer->Chunk(0).Take(), answer->sending);
          return absl::OkStatus();
        });
        if (fault.ok()) return;
        if (answer.ok()) answer->sending->Failed(fault);
        End(fault);
      });
  if (!status.ok()) return state->Refuse(status);
  state->Submit(service_, std::move(request));
}

}  // namespace linserve
