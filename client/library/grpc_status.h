#pragma once

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace linserve {

// Converts a status, whose codes are the same; details are dropped.
absl::Status ToAbsl(const grpc::Status& status);
grpc::Status ToGrpc(const absl::Status& status);

}  // namespace linserve
