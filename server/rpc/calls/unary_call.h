#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "serving/request.h"

namespace linserve {

// Handles one call of a unary RPC whose request is computed. It lives until gRPC and its request
// are done with it.
class UnaryCall : public grpc::ServerUnaryReactor, public std::enable_shared_from_this<UnaryCall> {
 public:
  // Begins the call. `call` keeps itself alive from now on.
  static UnaryCall* Start(const std::shared_ptr<UnaryCall>& call, grpc::ByteBuffer& request);

 protected:
  UnaryCall(ServiceContext& service, grpc::CallbackServerContext* context, const std::string& rpc,
            grpc::ByteBuffer* response)
      : service_(service),
        context_(context),
        metrics_(service.metrics.ForRpc(rpc)),
        response_(response) {}

  // Takes the request, which is answered by Respond() or End(). What it throws ends the call.
  virtual void Handle(grpc::ByteBuffer& request) = 0;

  CallSide Side();
  // Answers with a message, and holds `sending` until it is sent.
  void Respond(grpc::ByteBuffer message, std::shared_ptr<void> sending);
  void End(const absl::Status& status);  // only the first call does anything

  ServiceContext& service_;
  grpc::CallbackServerContext* const context_;
  RpcMetrics& metrics_;

 private:
  void OnCancel() override { cancelled_ = true; }
  void OnDone() override;

  grpc::ByteBuffer* const response_;
  std::atomic<bool> cancelled_ = false;
  std::atomic<bool> ended_ = false;
  std::shared_ptr<void> sending_;
  std::shared_ptr<UnaryCall> self_;
};

}  // namespace linserve
