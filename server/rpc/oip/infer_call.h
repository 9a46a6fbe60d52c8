#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rpc/oip/infer_answer.h"
#include "serving/service_context.h"

namespace linserve {

// Handles one call of ModelInfer. It owns itself until gRPC is done with it; its request may live
// longer.
class InferCall : public grpc::ServerUnaryReactor, public std::enable_shared_from_this<InferCall> {
 public:
  static InferCall* Start(ServiceContext& service, grpc::CallbackServerContext* context,
                          grpc::ByteBuffer& request, grpc::ByteBuffer* response);

  InferCall(ServiceContext& service, grpc::CallbackServerContext* context,
            grpc::ByteBuffer* response)
      : service_(service),
        context_(context),
        metrics_(service.metrics.ForRpc("ModelInfer")),
        response_(response) {}

  void OnCancel() override { cancelled_ = true; }
  void OnDone() override;

 private:
  void Begin(grpc::ByteBuffer& bytes);
  absl::Status Fill(absl::StatusOr<InferAnswer> answer, const std::string& id);
  void Answer(const absl::Status& status);  // only the first call does anything

  ServiceContext& service_;
  grpc::CallbackServerContext* const context_;
  RpcMetrics& metrics_;
  grpc::ByteBuffer* const response_;
  std::atomic<bool> cancelled_ = false;
  std::atomic<bool> answered_ = false;
  std::shared_ptr<void> sending_;
  std::shared_ptr<InferCall> self_;
};

}  // namespace linserve
