#include "rest/waiting_infer.h"

#include <future>
#include <memory>
#include <utility>

#include "rpc/call_context.h"
#include "rpc/inference_request.h"

namespace linserve {

absl::StatusOr<InferAnswer> InferAndWait(ServiceContext& context, const std::string& rpc,
                                         const std::string& headers_id,
                                         inference::ModelInferRequest request) {
  const auto answered = std::make_shared<std::promise<absl::StatusOr<InferAnswer>>>();
  RpcMetrics& metrics = context.metrics.ForRpc(rpc);
  const std::string id = headers_id.empty() ? request.id() : headers_id;
  const auto done = [answered](absl::StatusOr<InferAnswer> answer) {
    answered->set_value(std::move(answer));
  };
  const auto state = std::make_shared<InferRequestState>(
      InferRequestState::CallSide{metrics, false, done, [] { return false; }},
      id.substr(0, kLongestRequestId), TimePoint::max());
  const absl::Status status = state->Submit(context, std::move(request));
  if (!status.ok()) {
    state->Refused(status);
    return status;
  }
  return answered->get_future().get();
}

}  // namespace linserve
