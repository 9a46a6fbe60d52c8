#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "inference/grpc_service.pb.h"
#include "rpc/infer_answer.h"
#include "rpc/service_context.h"

namespace linserve {

// ModelInfer of a caller that waits for its answer. `rpc` names it in the metrics; `headers_id` is
// what the caller sent as X-Request-Id, if anything.
absl::StatusOr<InferAnswer> InferAndWait(ServiceContext& context, const std::string& rpc,
                                         const std::string& headers_id,
                                         inference::ModelInferRequest request);

}  // namespace linserve
