#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "rpc/outbox.h"
#include "rpc/service_context.h"

namespace linserve {

// One call of an RPC that takes a request and streams its answers, each as soon as it is ready.
// Lives until gRPC and the last of its answers are done with it.
class ServerStreamCall : public grpc::ServerWriteReactor<grpc::ByteBuffer>,
                         public std::enable_shared_from_this<ServerStreamCall> {
 public:
  // `call` keeps itself alive from now on.
  static ServerStreamCall* Start(const std::shared_ptr<ServerStreamCall>& call,
                                 grpc::ByteBuffer& request);

 protected:
  ServerStreamCall(ServiceContext& service, grpc::CallbackServerContext* context,
                   const std::string& rpc);

  // Takes the request. The outbox is to be finished once its last answer is pushed.
  virtual void Handle(grpc::ByteBuffer& request) = 0;

  // Ends the call with the fault.
  void Refuse(const absl::Status& fault);

  ServiceContext& service_;
  grpc::CallbackServerContext* const context_;
  RpcMetrics& metrics_;
  Outbox outbox_;

 private:
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

  std::shared_ptr<ServerStreamCall> self_;
};

}  // namespace linserve
