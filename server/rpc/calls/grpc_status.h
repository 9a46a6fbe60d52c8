#pragma once

#include <grpcpp/support/status.h>

#include <chrono>
#include <optional>
#include <string>

#include "absl/status/status.h"

namespace linserve {

// Returns the status's message as callers are sent it: at most 1 KiB, because a status goes in
// trailers, of which gRPC takes no more than a few KiB; and UTF-8, without which nobody can read a
// message that holds it.
std::string MessageOf(const absl::Status& status);

// Converts a status to gRPC's, with the same code and MessageOf() it, or no message where there is
// no memory for it. A delay to come back after stands in its details, as google.rpc.RetryInfo.
grpc::Status ToGrpcStatus(const absl::Status& status);

// Reads that delay out of the details; nullopt if there is none.
std::optional<std::chrono::milliseconds> RetryDelayOf(const grpc::Status& status);

}  // namespace linserve
