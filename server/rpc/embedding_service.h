#pragma once

#include "linserve/v1/embedding.grpc.pb.h"
#include "rpc/service_context.h"

namespace linserve {

// linserve.v1.EmbeddingService: hop 1 and hop 7. Only translates; nothing here blocks.
class EmbeddingService : public v1::EmbeddingService::CallbackService {
 public:
  // `context` must outlive the service.
  explicit EmbeddingService(ServiceContext& context) : context_(context) {}

  grpc::ServerWriteReactor<v1::EmbedResponse>* Embed(grpc::CallbackServerContext* context,
                                                     const v1::EmbedRequest* request) override;
  grpc::ServerBidiReactor<v1::EmbedRequest, v1::EmbedResponse>* EmbedStream(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* ListModels(grpc::CallbackServerContext* context,
                                       const v1::ListModelsRequest* request,
                                       v1::ListModelsResponse* response) override;
  grpc::ServerUnaryReactor* GetModel(grpc::CallbackServerContext* context,
                                     const v1::GetModelRequest* request,
                                     v1::Model* response) override;

 private:
  ServiceContext& context_;
};

}  // namespace linserve
