#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "core/mutex.h"
#include "rpc/stream_call.h"

namespace linserve {

// One call of ModelStreamInfer. A failed request is an answer with error_message, unless the caller
// sent the header `triton_grpc_error: true`: then the first failure ends the stream with its
// status. Answers come as requests finish, or, with `linserve-ordered: true`, in the order of the
// requests.
class InferStreamCall : public StreamCall {
 public:
  InferStreamCall(ServiceContext& service, grpc::CallbackServerContext* context);

 private:
  absl::Status Handle(grpc::ByteBuffer& bytes) override;
  struct Outcome {
    std::unique_ptr<Answer> answer;  // or
    grpc::Status end;                // of the stream
  };

  void Send(int64_t place, Outcome outcome);
  void Push(Outcome outcome);

  const bool ordered_;
  const bool ends_with_error_;
  int64_t requests_ = 0;              // read so far
  std::atomic<bool> failed_ = false;  // nobody waits for what comes after the failure

  Mutex order_mutex_;
  int64_t next_ LINSERVE_GUARDED_BY(order_mutex_) = 0;  // request to be answered
  bool sending_ LINSERVE_GUARDED_BY(order_mutex_) = false;
  std::map<int64_t, Outcome> waiting_ LINSERVE_GUARDED_BY(order_mutex_);
};

}  // namespace linserve
