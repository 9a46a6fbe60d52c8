#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "inference/grpc_service.pb.h"
#include "rest/rest_call.h"
#include "rpc/oip/infer_answer.h"

namespace linserve {

// Calls ModelInfer for a caller that waits for its answer, in which a byte of the results becomes
// up to `answer_bytes`. A request that could not be read is refused, which counts as a request,
// too. `rpc` names the request in the metrics.
absl::StatusOr<InferAnswer> InferAndWait(const RestCall& call, const std::string& rpc,
                                         absl::StatusOr<inference::ModelInferRequest> request,
                                         int64_t answer_bytes);

}  // namespace linserve
