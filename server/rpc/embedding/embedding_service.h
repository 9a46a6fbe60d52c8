#pragma once

#include "linserve/v1/embedding.grpc.pb.h"
#include "serving/service_context.h"

namespace linserve {

// All goes as raw bytes: a message is decoded when its caller is admitted and its size is known,
// and rows need no copy.
using EmbeddingServiceBase = v1::EmbeddingService::WithRawCallbackMethod_Embed<
    v1::EmbeddingService::WithRawCallbackMethod_EmbedStream<
        v1::EmbeddingService::WithRawCallbackMethod_Generate<
            v1::EmbeddingService::WithRawCallbackMethod_ListModels<
                v1::EmbeddingService::WithRawCallbackMethod_GetModel<
                    v1::EmbeddingService::Service>>>>>;

// Serves linserve.v1.EmbeddingService. It only translates; nothing here blocks.
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
                                       const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* GetModel(grpc::CallbackServerContext* context,
                                     const grpc::ByteBuffer* request,
                                     grpc::ByteBuffer* response) override;

 private:
  ServiceContext& context_;
};

}  // namespace linserve
