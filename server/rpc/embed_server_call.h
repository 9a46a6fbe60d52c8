#pragma once

#include "rpc/server_stream_call.h"

namespace linserve {

// One call of Embed: a request, then its results.
class EmbedServerCall : public ServerStreamCall {
 public:
  EmbedServerCall(ServiceContext& service, grpc::CallbackServerContext* context)
      : ServerStreamCall(service, context, "Embed") {}

 private:
  void Handle(grpc::ByteBuffer& bytes) override;
};

}  // namespace linserve
