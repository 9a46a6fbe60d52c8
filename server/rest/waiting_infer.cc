#include "rest/waiting_infer.h"

#include <future>
#include <memory>
#include <utility>

#include "rpc/admission.h"
#include "rpc/call_context.h"
#include "rpc/inference_request.h"

namespace linserve {

absl::Status Admit(const RestCall& call) {
  return AdmitCaller(call.service, *call.caller, static_cast<int64_t>(call.http.body.size()));
}

absl::StatusOr<InferAnswer> InferAndWait(const RestCall& call, const std::string& rpc,
                                         absl::StatusOr<inference::ModelInferRequest> request) {
  const auto answered = std::make_shared<std::promise<absl::StatusOr<InferAnswer>>>();
  RpcMetrics& metrics = call.service.metrics.ForRpc(rpc);
  const std::string header = call.http.Header("x-request-id");
  const std::string id = header.empty() && request.ok() ? request->id() : header;
  const auto done = [answered](absl::StatusOr<InferAnswer> answer) {
    answered->set_value(std::move(answer));
  };
  const auto state = std::make_shared<InferRequestState>(
      InferRequestState::CallSide{metrics, false, done, call.http.abandoned},
      RequestContext{RequestIdOr(id), TimePoint::max(), call.caller,
                     TraceIdOf(call.http.Header("traceparent")), call.begin});
  if (request.ok()) {
    const auto size = static_cast<int64_t>(request->ByteSizeLong());
    state->Submit(call.service, {.message = *std::move(request), .bytes = size});
  } else {
    state->Refuse(request.status());
  }
  return answered->get_future().get();
}

}  // namespace linserve
