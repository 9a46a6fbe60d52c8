#pragma once

#include <grpcpp/grpcpp.h>

#include "core/threads/periodic.h"

namespace linserve {

// Calls the server's own health check in process every 400 ms. gRPC 1.51's callback threads sleep
// up to 100 ms once a second has passed without work, and the next call waits for them.
class IdleTick {
 public:
  explicit IdleTick(grpc::Server& server);

 private:
  Periodic periodic_;
};

}  // namespace linserve
