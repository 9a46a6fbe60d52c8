#pragma once

#include "linserve/v1/embedding.grpc.pb.h"
#include "rpc/service_context.h"

namespace linserve {

// Embeddings go as raw bytes, so that their rows need no copy.
using EmbeddingServiceBase = v1::EmbeddingService::WithRawCallbackMethod_Embed<
    v1::EmbeddingService::WithRawCallbackMethod_EmbedStream<
        v1::EmbeddingService::WithRawCallbackMethod_Generate<
            v1::EmbeddingService::WithCallbackMethod_ListModels<
                v1::EmbeddingService::WithCallbackMethod_GetModel<
                    v1::EmbeddingService::Service>>>>>;

// linserve.v1.EmbeddingService: hop 1 and hop 7. Only translates; nothing here blocks.
class EmbeddingService : public EmbeddingServiceBase {
 public:
  // `context` must outlive the service.
  explicit EmbeddingService(ServiceContext& context) : context_(context) {}

  grpc::ServerWriteReactor<grpc::ByteBuffer>* Embed(grpc::CallbackServerContext* context,
                                                    const grpc::ByteBuffer* request) override;
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* EmbedStream(
      grpc::CallbackServerContext* context) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* Generate(grpc::CallbackServerContext* context,
                                                       const grpc::ByteBuffer* request) override;
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
