#pragma once

#include "rpc/calls/server_stream_call.h"

namespace linserve {

// Handles one call of Embed: it takes a request, then sends its results.
class EmbedServerCall : public ServerStreamCall {
 public:
  EmbedServerCall(ServiceContext& service, grpc::CallbackServerContext* context)
      : ServerStreamCall(service, context, "Embed") {}

 private:
  void Handle(grpc::ByteBuffer& bytes) override;
};

}  // namespace linserve
