#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "http/http_message.h"
#include "inference/grpc_service.pb.h"
#include "rest/calls/rest_call.h"
#include "rpc/oip/infer_answer.h"

namespace linserve {

// These functions read and write ModelInfer over REST, as KServe and Triton have it: JSON, with
// tensors as arrays in it or, by the binary data extension, as bytes after it.

// Bounds the inputs, and the outputs, that a request may name: many more than any model has.
inline constexpr size_t kMaxTensors = 64;
// Bounds the parameters of a request, of an input and of an output.
inline constexpr size_t kMaxParameters = 64;
// Bounds the axes of an input, as NumPy once did.
inline constexpr int kMaxAxes = 32;

inline constexpr char kBinarySize[] = "binary_data_size";
inline constexpr char kHeaderLength[] = "Inference-Header-Content-Length";

struct JsonInferRequest {
  inference::ModelInferRequest message;
  std::vector<std::string> binary_outputs;  // outputs that are asked for as bytes
  bool all_binary = false;                  // all outputs but those that say otherwise
  std::vector<std::string> json_outputs;    // outputs that are asked for as JSON

  // Returns how many bytes of the answer a byte of its results becomes at most. REQUIRES: `message`
  // is still there.
  int64_t AnswerBytes() const;
};

// Returns how many bytes of a body are JSON, as a header says it; nullopt if none does, or it is no
// number. What follows is binary data.
std::optional<uint64_t> JsonLength(const HttpRequest& request);

// Reads a request without the model's name, which is in the path. INVALID_ARGUMENT says what is
// wrong and where; `id` is the request's even then, if it could be read.
absl::StatusOr<JsonInferRequest> ReadInferRequest(const RestCall& call, std::string& id);

// Fails where a result has no form in JSON.
absl::StatusOr<HttpReply> WriteInferResponse(const InferAnswer& answer,
                                             const JsonInferRequest& asked);

}  // namespace linserve
