#pragma once

#include <grpcpp/grpcpp.h>

#include "absl/status/status.h"
#include "core/threads/guarded.h"
#include "rpc/calls/grpc_status.h"

namespace linserve {

// Ends a call with the status at once.
template <typename Reactor>
class EndedCall : public Reactor {
 public:
  explicit EndedCall(const absl::Status& status) { this->Finish(ToGrpcStatus(status)); }

 private:
  void OnDone() override { delete this; }
};

// Returns the call that `start` begins or, where that throws, one that ends with the reason. gRPC
// would say UNIMPLEMENTED.
template <typename Reactor, typename Start>
Reactor* Started(const Start& start) {
  Reactor* call = nullptr;
  const absl::Status status = Guarded("the call", [&] { call = start(); });
  return status.ok() ? call : new EndedCall<Reactor>(status);
}

}  // namespace linserve
