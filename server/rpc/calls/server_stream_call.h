#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "rpc/calls/outbox.h"
#include "serving/request.h"

namespace linserve {

// Handles one call of an RPC that takes a request and streams its answers, each as soon as it is
// ready. It lives until gRPC and the last of its answers are done with it.
class ServerStreamCall : public grpc::ServerWriteReactor<grpc::ByteBuffer>,
                         public std::enable_shared_from_this<ServerStreamCall> {
 public:
  // Begins the call. `call` keeps itself alive from now on.
  static ServerStreamCall* Start(const std::shared_ptr<ServerStreamCall>& call,
                                 grpc::ByteBuffer& request);

 protected:
  ServerStreamCall(ServiceContext& service, grpc::CallbackServerContext* context,
                   const std::string& rpc);

  // Takes the request. When the request ends, the call ends: see Side(). It also ends with what
  // this throws.
  virtual void Handle(grpc::ByteBuffer& request) = 0;

  CallSide Side();

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
