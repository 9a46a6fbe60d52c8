#pragma once

#include <grpcpp/grpcpp.h>

#include "rpc/calls/unary_call.h"

namespace linserve {

// Handles one call of ModelInfer.
class InferCall : public UnaryCall {
 public:
  InferCall(ServiceContext& service, grpc::CallbackServerContext* context,
            grpc::ByteBuffer* response)
      : UnaryCall(service, context, "ModelInfer", response) {}

 private:
  void Handle(grpc::ByteBuffer& bytes) override;
};

}  // namespace linserve
