#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/library/calls.h"
#include "inference/grpc_service.pb.h"

namespace linserve {

// These functions write and read calls in the form of the Open Inference Protocol, for linserve and
// for other servers of it. All sequences of a call go as one batch, its first axis, padded with
// zeros, with their true lengths where these differ.

// Makes the request. Returns UNIMPLEMENTED for sequences of several inputs that differ in length.
absl::StatusOr<inference::ModelInferRequest> EncodeInferRequest(const EmbedCall& call);

// Returns the results of `call`, cropped to the sequences' own lengths. INTERNAL means that the
// response contradicts itself or the call.
absl::StatusOr<std::vector<SequenceResult>> DecodeInferResponse(
    const EmbedCall& call, const inference::ModelInferResponse& response);

// Describes a model as its metadata tell of it: every length that varies is one axis "n", and
// integers are tokens of `vocabulary` ids.
ModelDescription DecodeMetadata(const inference::ModelMetadataResponse& metadata,
                                int64_t vocabulary);

}  // namespace linserve
