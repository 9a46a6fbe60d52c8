#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "inference/grpc_service.pb.h"
#include "rest/rest_call.h"
#include "rpc/infer_answer.h"

namespace linserve {

// Whether the caller may infer, and its rates permit a body of this size: asked before it is
// parsed.
absl::Status Admit(const RestCall& call);

// ModelInfer of a caller that waits for its answer, or the refusal of what he asked for, which
// counts as a request, too. `rpc` names it in the metrics.
absl::StatusOr<InferAnswer> InferAndWait(const RestCall& call, const std::string& rpc,
                                         absl::StatusOr<inference::ModelInferRequest> request);

}  // namespace linserve
