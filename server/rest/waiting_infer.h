#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "inference/grpc_service.pb.h"
#include "rest/rest_call.h"
#include "rpc/infer_answer.h"

namespace linserve {

// ModelInfer of a caller that waits for its answer. `rpc` names it in the metrics.
absl::StatusOr<InferAnswer> InferAndWait(const RestCall& call, const std::string& rpc,
                                         inference::ModelInferRequest request);

}  // namespace linserve
