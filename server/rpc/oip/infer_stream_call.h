#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "rpc/calls/answer_order.h"
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
  void Answer(int64_t number, const std::string& id, absl::StatusOr<InferAnswer> result,
              const std::shared_ptr<void>& in_flight);

  const bool ends_with_error_;
  int64_t requests_ = 0;  // requests read so far
  AnswerOrder order_;
};

}  // namespace linserve
