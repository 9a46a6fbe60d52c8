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
                                grpc::ByteBuffer& request);

  EmbedServerCall(ServiceContext& service, grpc::CallbackServerContext* context);

 private:
  void Begin(grpc::ByteBuffer& bytes);
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

  ServiceContext& service_;
  grpc::CallbackServerContext* const context_;
  RpcMetrics& metrics_;
  Outbox outbox_;
  std::shared_ptr<EmbedServerCall> self_;
};

}  // namespace linserve
