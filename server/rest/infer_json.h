#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "http/http_message.h"
#include "inference/grpc_service.pb.h"
#include "rpc/infer_answer.h"

namespace linserve {

// ModelInfer over REST, as KServe and Triton have it: JSON, tensors as arrays in it or, by the
// binary data extension, as bytes after it.

struct JsonInferRequest {
  inference::ModelInferRequest message;
  std::vector<std::string> binary_outputs;  // that are asked for as bytes
  bool all_binary = false;                  // unless an output says otherwise
  std::vector<std::string> json_outputs;    // that do
};

// Without the model's name. INVALID_ARGUMENT says what is wrong and where.
absl::StatusOr<JsonInferRequest> ReadInferRequest(const HttpRequest& request);

HttpReply WriteInferResponse(const InferAnswer& answer, const JsonInferRequest& asked);

}  // namespace linserve
