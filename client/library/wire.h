#pragma once

#include <grpcpp/support/status.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/library/calls.h"
#include "client/library/result_assembler.h"
#include "linserve/v1/embedding.pb.h"

namespace linserve {

// Makes the request for the sequences `indices` of `call`, in that order. Token inputs named `x`
// take the short form where it can hold them; whatever is wrong with an input is for the server to
// say.
v1::EmbedRequest EncodeRequest(const EmbedCall& call, const std::vector<size_t>& indices);
v1::EmbedRequest EncodeRequest(const EmbedCall& call);

v1::GenerateRequest EncodeGenerateRequest(const GenerateCall& call);

// Calls take(response), which returns a status, for the message and the others that it brings, as
// long as that is well.
template <typename Take>
absl::Status ForEachResponse(v1::EmbedResponse&& message, const Take& take) {
  auto others = std::move(*message.mutable_others());
  absl::Status status = take(std::move(message));
  for (auto other = others.begin(); status.ok() && other != others.end(); ++other) {
    status = take(std::move(*other));
  }
  return status;
}

// Takes the rows' bytes out of `response` without copying them. Returns INTERNAL if dtype, shape
// and number of bytes contradict each other.
absl::StatusOr<ResultChunk> DecodeChunk(v1::EmbedResponse&& response);

ModelDescription DecodeModel(const v1::Model& model);

// Converts a status, whose codes are the same. Of its details a delay to come back after is kept.
absl::Status ToAbsl(const grpc::Status& status);

}  // namespace linserve
