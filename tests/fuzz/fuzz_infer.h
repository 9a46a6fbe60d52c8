#pragma once

#include <future>
#include <memory>
#include <string>
#include <utility>

#include "fuzz/fuzz_server.h"
#include "rpc/oip/inference_request.h"

namespace linserve {

// Returns the answer to the request, after making all of its messages.
inline absl::StatusOr<InferAnswer> FuzzInfer(Received<inference::ModelInferRequest> request) {
  ServiceContext& server = FuzzServer();
  const auto answered = std::make_shared<std::promise<absl::StatusOr<InferAnswer>>>();
  const auto done = [answered](absl::StatusOr<InferAnswer> answer) {
    if (answer.ok()) {
      for (size_t chunk = 0; chunk < answer->Chunks(); ++chunk) (void)answer->Chunk(chunk).Take();
    }
    answered->set_value(std::move(answer));
  };
  std::make_shared<InferRequestState>(
      CallSide{nullptr, server.metrics.ForRpc("ModelInfer"), [] { return false; }},
      RequestContext{.id = "id", .caller = FuzzCaller()}, /*chunks=*/true, done)
      ->Submit(server, std::move(request));
  return answered->get_future().get();
}

}  // namespace linserve
