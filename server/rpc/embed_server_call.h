#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>

#include "rpc/embed_request.h"

namespace linserve {

// One call of Embed: a request, then its results, each as soon as it is ready.
class EmbedServerCall : public grpc::ServerWriteReactor<grpc::ByteBuffer>,
                        public std::enable_shared_from_this<EmbedServerCall> {
 public:
  // The reactor, which lives until gRPC and the last of its results are done with it.
  static EmbedServerCall* Start(ServiceContext& service, grpc::CallbackServerContext* context,
                                const grpc::ByteBuffer& request);

  explicit EmbedServerCall(RpcMetrics& metrics);

 private:
  void Begin(ServiceContext& service, grpc::CallbackServerContext* context,
             const grpc::ByteBuffer& bytes);
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

  RpcMetrics& metrics_;
  Outbox outbox_;
  std::shared_ptr<EmbedServerCall> self_;
};

}  // namespace linserve
