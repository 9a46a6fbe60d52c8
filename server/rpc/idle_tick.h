#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <thread>

#include "core/mutex.h"

namespace linserve {

// Calls the server's own health check in process every 400 ms. gRPC 1.51's callback threads sleep
// up to 100 ms once a second has passed without work, and the next call waits for them.
class IdleTick {
 public:
  explicit IdleTick(grpc::Server& server);
  ~IdleTick();

 private:
  void Run(const std::shared_ptr<grpc::Channel>& channel);

  Mutex mutex_;
  CondVar stop_;
  bool stopping_ LINSERVE_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace linserve
