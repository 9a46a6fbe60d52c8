#pragma once

#include "rpc/server_stream_call.h"

namespace linserve {

// One call of Generate: a prompt, then the tokens that follow it.
class GenerateCall : public ServerStreamCall {
 public:
  GenerateCall(ServiceContext& service, grpc::CallbackServerContext* context)
      : ServerStreamCall(service, context, "Generate") {}

 private:
  void Handle(grpc::ByteBuffer& bytes) override;
};

}  // namespace linserve
