#pragma once

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace linserve {

// The two have the same codes; details are dropped.
absl::Status ToAbsl(const grpc::Status& status);
grpc::Status ToGrpc(const absl::Status& status);

}  // namespace linserve
