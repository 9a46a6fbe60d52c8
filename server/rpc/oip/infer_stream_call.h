#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/threads/mutex.h"
#include "rpc/calls/stream_call.h"
#include "rpc/oip/infer_answer.h"

namespace linserve {

// Handles one call of ModelStreamInfer. A failed request is answered with error_message, unless the
// caller sent the header `triton_grpc_error: true`: then the first failure ends the stream with its
// status, and nothing is sent after it. Answers come as requests finish, or, with
// `linserve-ordered: true`, in the order of the requests: then all that came before the failed one
// are answered, and none after it.
class InferStreamCall : public StreamCall {
 public:
  InferStreamCall(ServiceContext& service, grpc::CallbackServerContext* context);

 private:
  absl::Status Handle(grpc::ByteBuffer& bytes) override;
  struct Outcome {
    std::unique_ptr<Answer> answer;  // null: the stream ends
    grpc::Status end;                // status that the stream ends with
  };

  void Answer(int64_t place, const std::string& id, absl::StatusOr<InferAnswer> result,
              const std::shared_ptr<void>& in_flight);
  void Send(int64_t place, Outcome outcome);
  void Push(Outcome outcome);

  const bool ordered_;
  const bool ends_with_error_;
  int64_t requests_ = 0;              // requests read so far
  std::atomic<bool> failed_ = false;  // nobody waits for what comes after the failure

  Mutex order_mutex_;
  int64_t next_ ABSL_GUARDED_BY(order_mutex_) = 0;  // next request to be answered
  bool sending_ ABSL_GUARDED_BY(order_mutex_) = false;
  std::map<int64_t, Outcome> waiting_ ABSL_GUARDED_BY(order_mutex_);
};

}  // namespace linserve
