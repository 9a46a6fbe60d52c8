#pragma once

#include "rpc/calls/server_stream_call.h"

namespace linserve {

// Handles one call of Generate: it takes a prompt, then sends the tokens that follow it.
class GenerateServerCall : public ServerStreamCall {
 public:
  GenerateServerCall(ServiceContext& service, grpc::CallbackServerContext* context)
      : ServerStreamCall(service, context, "Generate") {}

 private:
  void Handle(grpc::ByteBuffer& bytes) override;
};

}  // namespace linserve
