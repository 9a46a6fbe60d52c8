#pragma once

#include <grpcpp/grpcpp.h>

#include <set>
#include <string>

#include "core/mutex.h"
#include "rpc/stream_call.h"

namespace linserve {

// One call of EmbedStream: requests are answered in the order in which they finish, and a faulty
// request is an answer.
class EmbedStreamCall : public StreamCall {
 public:
  EmbedStreamCall(ServiceContext& service, grpc::CallbackServerContext* context)
      : StreamCall(service, context, "EmbedStream") {}

 private:
  absl::Status Handle(grpc::ByteBuffer& bytes) override;

  Mutex ids_mutex_;
  std::set<std::string> ids_ LINSERVE_GUARDED_BY(ids_mutex_);  // of those with answers to come
};

}  // namespace linserve
