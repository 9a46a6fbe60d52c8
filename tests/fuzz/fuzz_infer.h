#pragma once

#include <future>
#include <memory>
#include <string>
#include <utility>

#include "fuzz/fuzz_server.h"
#include "rpc/inference_request.h"

namespace linserve {

// The answer to the request, of whose message all is made.
inline absl::StatusOr<InferAnswer> FuzzInfer(Received<inference::ModelInferRequest> request) {
  ServiceContext& server = FuzzServer();
  const auto answered = std::make_shared<std::promise<absl::StatusOr<InferAnswer>>>();
  const auto done = [answered](absl::StatusOr<InferAnswer> answer) {
    if (answer.ok()) {
      for (size_t part = 0; part < answer->parts.size(); ++part) (void)answer->Part(part).Take();
    }
    answered->set_value(std::move(answer));
  };
  std::make_shared<InferRequestState>(
      InferRequestState::CallSide{server.metrics.ForRpc("ModelInfer"), true, done,
                                  [] { return false; }},
      RequestContext{"id", TimePoint::max(), FuzzCaller()})
      ->Submit(server, std::move(request));
  return answered->get_future().get();
}

}  // namespace linserve
