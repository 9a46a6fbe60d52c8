#include "rest/waiting_infer.h"

#include <future>
#include <memory>
#include <utility>

#include "rpc/oip/inference_request.h"

namespace linserve {

absl::StatusOr<InferAnswer> InferAndWait(const RestCall& call, const std::string& rpc,
                                         absl::StatusOr<inference::ModelInferRequest> request,
                                         int64_t answer_bytes) {
  const auto answered = std::make_shared<std::promise<absl::StatusOr<InferAnswer>>>();
  const auto state = std::make_shared<InferRequestState>(
      SideOf(call, rpc), ContextOf(call, request.ok() ? request->id() : ""), /*chunks=*/false,
      [answered](absl::StatusOr<InferAnswer> answer) { answered->set_value(std::move(answer)); });
  state->AnswerTakes(answer_bytes);
  if (request.ok()) {
    const auto size = static_cast<int64_t>(request->ByteSizeLong());
    state->Submit(call.service, {.message = *std::move(request), .bytes = size});
  } else {
    state->Refuse(request.status());
  }
  return answered->get_future().get();
}

}  // namespace linserve
